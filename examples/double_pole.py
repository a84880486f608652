"""Double pole balancing: two poles of different lengths on one cart, the classic test of
neuroevolution (Wieland 1991).

Run it: `python examples/double_pole.py`, or with `--no-velocities` for the harder task, in which
the network sees positions and angles, and how much they changed since the step before. Needs
coevo[control].
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
from numba import njit

from coevo import evolve_policy

GRAVITY, CART_MASS, FORCE = -9.8, 1.0, 10.0
POLE_MASSES, HALF_LENGTHS = (0.1, 0.01), (0.5, 0.05)
CART_FRICTION, POLE_FRICTION = 0.0005, 0.000002
SECONDS_PER_STEP, INTEGRATIONS_PER_STEP = 0.02, 2
TRACK, WIDEST_ANGLE = 2.4, math.radians(36)
FIRST_ANGLE = math.radians(4.5)
SCALES = np.array([TRACK, 10.0, WIDEST_ANGLE, 5.0, WIDEST_ANGLE, 16.0])  # of what is observed
CHANGE_SCALE = 20.0  # positions change little within a step
IN_TRAINING, SOLVED = 1_000, 100_000  # steps; the latter are about half an hour of balancing
INITIAL_RANGE = 1.0  # of the weights
PATIENCE = 30  # generations without a better global solution, before the search begins anew


@njit
def _differentiate(state, force):
    """The cart's and the poles' speeds and accelerations: (x, x′, θ₁, θ₁′, θ₂, θ₂′)."""
    forces, masses = 0.0, 0.0
    for i in range(2):
        angle, speed = state[2 + 2 * i], state[3 + 2 * i]
        mass, length = POLE_MASSES[i], HALF_LENGTHS[i]
        friction = POLE_FRICTION * speed / (mass * length)
        forces += mass * length * speed**2 * math.sin(angle)
        forces += 0.75 * mass * math.cos(angle) * (friction + GRAVITY * math.sin(angle))
        masses += mass * (1 - 0.75 * math.cos(angle) ** 2)
    push = force - CART_FRICTION * np.sign(state[1])
    change = np.empty(6)
    change[0], change[1] = state[1], (push + forces) / (CART_MASS + masses)
    for i in range(2):
        angle, speed = state[2 + 2 * i], state[3 + 2 * i]
        mass, length = POLE_MASSES[i], HALF_LENGTHS[i]
        friction = POLE_FRICTION * speed / (mass * length)
        pull = change[1] * math.cos(angle) + GRAVITY * math.sin(angle) + friction
        change[2 + 2 * i], change[3 + 2 * i] = speed, -0.75 * pull / length
    return change


@njit
def _move(state, force):
    """Integrate over a step by the fourth-order Runge-Kutta method."""
    h = SECONDS_PER_STEP / INTEGRATIONS_PER_STEP
    for _ in range(INTEGRATIONS_PER_STEP):
        k1 = _differentiate(state, force)
        k2 = _differentiate(state + 0.5 * h * k1, force)
        k3 = _differentiate(state + 0.5 * h * k2, force)
        k4 = _differentiate(state + h * k3, force)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


class DoublePole(gymnasium.Env):
    """A reward of 1 for each step until the cart leaves the track or a pole falls.

    Parameters
    ----------
    has_velocities
        Whether the whole state is observed (Markov). Otherwise positions and angles are, and 20
        times their change since the step before: a fixed linear map of those of the two steps, with
        the same information. Of the two themselves, which are nearly equal, a network would need
        large weights of opposite signs.
    has_changes
        Without velocities, whether changes are observed; otherwise the two steps themselves are.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012 - Gymnasium's way

    def __init__(
        self,
        has_velocities: bool = True,
        has_changes: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self.has_velocities, self.has_changes = has_velocities, has_changes
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (6,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        """Begin with the long pole at 4.5°, whatever the seed."""
        super().reset(seed=seed)
        self.state = np.zeros(6)
        self.state[2] = FIRST_ANGLE
        self.n_steps = 0
        self._seen = (self.state / SCALES)[::2]
        return self._observe(), {}

    def _observe(self):
        scaled = self.state / SCALES
        before, self._seen = self._seen, scaled[::2]
        if self.has_velocities:
            return scaled
        second = CHANGE_SCALE * (self._seen - before) if self.has_changes else before
        return np.concatenate([self._seen, second])

    def step(self, action):
        """Push the cart with a force of up to 10 N."""
        self.state = _move(self.state, FORCE * float(action[0]))
        self.n_steps += 1
        x, _, first, _, second, _ = self.state
        falls = abs(x) > TRACK or max(abs(first), abs(second)) > WIDEST_ANGLE
        return self._observe(), 1.0, falls, self.n_steps >= SOLVED, {}

    def render(self):
        """Draw the cart and its poles, 300 × 150 pixels."""
        from PIL import Image, ImageDraw  # noqa: PLC0415 - only to draw

        picture = Image.new("RGB", (300, 150), "white")
        draw = ImageDraw.Draw(picture)
        x, y = 150 + 55 * self.state[0], 120
        draw.line((18, y + 12, 282, y + 12), fill="#56626e", width=2)
        draw.rectangle((x - 18, y, x + 18, y + 10), fill="#1b2733")
        for i, colour in enumerate(("#0072b2", "#c65200")):
            angle, length = self.state[2 + 2 * i], 100 * HALF_LENGTHS[i] ** 0.5
            tip = (x + length * math.sin(angle), y - length * math.cos(angle))
            draw.line((x, y, *tip), fill=colour, width=5)
        return np.asarray(picture)


def evolve(
    has_velocities: bool,
    seed: int,
    max_episodes: int,
    *,
    has_changes: bool = True,
    decomposition: str = "neuron",
):
    """Evolve until a network balances for 100,000 steps; return policy, steps and all episodes.

    There is one start, so that there is nothing to limit evaluation to: the variant is CCDE, by
    default with one subpopulation for each neuron, as in ESP. Training has episodes of 1,000
    steps, and who gets through these is tested. A search that gets nowhere begins anew.
    """
    n_episodes, n_attempts = 0, 0
    while True:
        result = evolve_policy(
            DoublePole,
            env_kwargs={"has_velocities": has_velocities, "has_changes": has_changes},
            limited_evaluation=False, decomposition=decomposition, seed=1000 * seed + n_attempts,
            n_training_seeds=1, n_validation_seeds=1,
            hidden_layer_sizes=(5,), population_size=10, initial_range=INITIAL_RANGE,
            scale_initial_range=False, normalize_observations=False, max_steps=IN_TRAINING,
            target_fitness=IN_TRAINING, patience=PATIENCE,
            max_evaluations=max(1, max_episodes - n_episodes),
        )  # fmt: skip
        n_steps = result.validation_return
        if n_steps == IN_TRAINING:
            n_steps = result.mean_return(2, max_steps=SOLVED).mean  # both from the one start
        n_episodes += result.episodes
        n_attempts += 1
        if n_steps >= SOLVED or n_episodes >= max_episodes:
            return result.policy, n_steps, n_episodes


def draw(path: Path, policy) -> None:
    """Draw the first ten seconds of the poles."""
    env = policy.make_environment()
    observation, _ = env.reset()
    angles = [env.state[2::2]]
    for _ in range(round(10 / SECONDS_PER_STEP)):
        observation, _, falls, _, _ = env.step(policy.act(observation))
        angles.append(env.state[2::2])
        if falls:
            break
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    seconds = SECONDS_PER_STEP * np.arange(len(angles))
    for pole, colour in enumerate(("#0072B2", "#D55E00")):
        label = ("long pole", "short pole")[pole]
        axes.plot(seconds, np.degrees(np.array(angles)[:, pole]), color=colour, label=label)
    axes.set(xlabel="seconds", ylabel="degrees from upright")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-velocities", action="store_true", help="the harder task")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=100_000, help="at most")
    parser.add_argument("--picture", type=Path, help="draw the outcome to this file")
    arguments = parser.parse_args()
    policy, n_steps, n_episodes = evolve(
        not arguments.no_velocities, arguments.seed, arguments.episodes
    )
    print(f"balanced for {n_steps:,.0f} steps after {n_episodes:,} episodes")
    if arguments.picture:
        draw(arguments.picture, policy)


if __name__ == "__main__":
    main()
