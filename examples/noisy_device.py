"""Hardware in the loop: a heater that is tuned on the device itself, whose every answer is noisy.

The device here is simulated, and could be a real one: all that the search sees is a function that
runs a controller for a while and returns how well the temperature was kept. The same run twice
gives two answers, which inherited fitness averages over generations. Run it with

    python examples/noisy_device.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from coevo import Architecture, AskTell, Network

N_SECONDS, ROOM = 60, 20.0


class Heater:
    """A heated plate with delay, seen through a noisy thermometer; only `run` is known outside."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self.n_runs = 0

    def run(self, controller: Network, wanted: float) -> float:
        """Let a controller heat for a minute; return minus the mean distance in degrees."""
        return -float(np.abs(self.heat(controller, wanted) - wanted).mean())

    def heat(self, controller: Network, wanted: float) -> np.ndarray:
        """Return the plate's temperature in each second."""
        self.n_runs += 1
        plate = element = ROOM
        before, temperatures = ROOM, []
        for _ in range(N_SECONDS):
            seen = plate + self._rng.normal(scale=0.5)
            inputs = np.array([[(wanted - seen) / 20, (seen - before) / 2, (wanted - ROOM) / 60]])
            before = seen
            power = np.clip(controller.outputs(inputs)[0, 0], 0, 1)
            element += 12 * power - 0.15 * (element - plate)
            plate += 0.12 * (element - plate) - 0.04 * (plate - ROOM)
            temperatures.append(plate)
        return np.array(temperatures)


def keep(controller: Network, heater: Heater, temperatures: np.ndarray) -> float:
    return float(np.mean([heater.run(controller, wanted) for wanted in temperatures]))


def draw(path: Path, controllers: dict[str, Network]) -> None:
    """Draw a minute of each controller."""
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    for (name, controller), colour in zip(controllers.items(), ("#BBBBBB", "#0072B2"), strict=True):
        axes.plot(Heater(seed=7).heat(controller, 60), color=colour, label=name)
    axes.axhline(60, color="#444444", linestyle=":", label="wanted")
    axes.set(xlabel="seconds", ylabel="degrees")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=3_000)
    parser.add_argument("--picture", type=Path, help="draw the outcome to this file")
    arguments = parser.parse_args()
    device = Heater()
    networks = Architecture(3, (3,), 1)
    temperatures = np.linspace(30, 80, 25)
    # ask and tell: whoever talks to the device decides when, and in which order.
    with AskTell(
        networks, instances=temperatures, seed=1, max_evaluations=arguments.evaluations
    ) as search:
        while (question := search.ask()) is not None:
            search.tell([keep(n, device, question.instances) for n in question.networks])
    print(f"{device.n_runs:,} runs of the device, {search.result.generations} generations")
    fresh = Heater(seed=99)
    constant = Network(networks, np.zeros(networks.n_genes))
    constant.biases[-1][:] = 0.5
    others = np.linspace(33, 77, 20)
    print(f"half power all the time: {-keep(constant, fresh, others):.1f} degrees off")
    evolved = search.result.network
    print(f"evolved on the device: {-keep(evolved, fresh, others):.1f} degrees off")
    if arguments.picture:
        draw(arguments.picture, {"half power": constant, "evolved": evolved})


if __name__ == "__main__":
    main()
