"""Records docs/figures/acrobot.gif: a policy before and after its evolution, side by side.

Run it as `python docs/figures/record_policy.py`, a minute or two. Needs coevo[control].
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from coevo import Network, evolve_policy
from coevo.policies.rendering import draw, write_gif

HERE = Path(__file__).parent
SEED, N_FRAMES = 5, 90


def main() -> None:
    """Evolve, and record the same episode twice."""
    result = evolve_policy("Acrobot-v1", max_evaluations=1_500, seed=1)
    after = result.policy
    random = np.random.default_rng(0).normal(size=after.network.genotype.size)
    before = replace(after, network=Network(after.network.architecture, random))
    films = []
    for policy in (before, after):
        env = policy.make_environment(render_mode="rgb_array")
        pictures, total = draw(policy, env, SEED)
        env.close()
        print(f"return {total:g}")
        films.append([picture.resize((180, 180)) for picture in pictures[:N_FRAMES]])
    n_frames = max(map(len, films))
    frames = []
    for k in range(n_frames):
        both = Image.new("RGB", (370, 180), "white")
        for place, film in enumerate(films):
            both.paste(film[min(k, len(film) - 1)], (190 * place, 0))
        frames.append(both)
    write_gif(HERE / "acrobot.gif", frames, 15)


if __name__ == "__main__":
    main()
