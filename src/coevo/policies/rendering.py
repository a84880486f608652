"""Shows policies: in a window, or as a GIF or MP4 without any screen."""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coevo._typing import Array, StrPath
from coevo.persistence.atomic import write_atomically
from coevo.policies.episodes import ENDLESS

if TYPE_CHECKING:
    from coevo.policies.policy import Policy

_FRAMES_PER_SECOND = 25
_WIDEST = 320  # pixels
_MOST_FRAMES = 1_500


def play(policy: Policy, env: Any, seed: int, max_steps: int | None = None) -> Iterator[float]:
    """Run an episode; yield the sum of rewards at its start and after each step."""
    observation, _ = env.reset(seed=seed)
    total = 0.0
    yield total
    for _ in range(max_steps or ENDLESS):
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        total += float(reward)
        yield total
        if terminated or truncated:
            return


def draw(policy: Policy, env: Any, seed: int, max_steps: int | None = None) -> tuple[Any, float]:
    """Return the pictures of an episode, at most 25 a second and 320 pixels wide, and its return.

    Parameters
    ----------
    policy
        Acts.
    env
        An environment made with `render_mode="rgb_array"`.
    seed
        Of the episode.
    max_steps
        Where it is cut off; None for where the environment ends it.

    Returns
    -------
    list of pictures of Pillow's, and the sum of rewards
    """
    from PIL import Image  # noqa: PLC0415 - slow to import

    every = max(1, round(env.metadata.get("render_fps", 30) / _FRAMES_PER_SECOND))
    pictures: list[Any] = []
    total = 0.0
    for step, gained in enumerate(play(policy, env, seed, max_steps)):
        total = gained
        if step % every or len(pictures) == _MOST_FRAMES:
            continue
        frame = env.render()
        if not isinstance(frame, np.ndarray) or frame.ndim != 3:
            raise ValueError(
                f"env.render() must give an array of shape (height, width, 3) in render_mode "
                f"'rgb_array', got {type(frame).__name__}"
            )
        picture = Image.fromarray(_as_bytes(frame))
        picture.thumbnail((_WIDEST, _WIDEST))
        pictures.append(picture)
    return pictures, total


def _as_bytes(frame: Array) -> Array:
    return np.ascontiguousarray(frame[..., :3], dtype=np.uint8)


def check_film(path: StrPath) -> None:
    """Raise unless a file of this name can be written here."""
    ending = Path(path).suffix.lower()
    if ending not in (".gif", ".mp4"):
        raise ValueError(f"path must end in .gif or .mp4, got {str(path)!r}")
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"path: the folder {Path(path).parent} does not exist")
    if ending == ".mp4":
        _find_ffmpeg()


def _find_ffmpeg() -> str:
    """Return the program: the system's, or that of the package imageio-ffmpeg."""
    found = shutil.which("ffmpeg")
    if found is None:
        try:
            package: Any = import_module("imageio_ffmpeg")
        except ImportError:
            raise ImportError(
                "an MP4 needs ffmpeg: pip install 'coevo[video]', or have ffmpeg on the PATH; "
                "a GIF needs neither"
            ) from None
        found = package.get_ffmpeg_exe()
    return str(found)


def write_film(path: StrPath, pictures: list[Any]) -> None:
    """Write pictures as a GIF or an MP4, as the file's name says, atomically."""
    if Path(path).suffix.lower() == ".mp4":
        write_mp4(path, pictures)
    else:
        write_gif(path, pictures)


def write_mp4(path: StrPath, pictures: list[Any], frames_per_second: float = 25) -> None:
    """Write pictures as an MP4 (H.264), atomically; their sides are cut to even lengths."""
    width, height = (side // 2 * 2 for side in pictures[0].size)
    raw = b"".join(np.asarray(picture)[:height, :width].tobytes() for picture in pictures)
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        coming = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
        command = [
            _find_ffmpeg(), "-loglevel", "error", *coming, "-r", str(frames_per_second), "-i", "-",
            "-c:v", "libx264", "-pix_fmt", "yuv420p", str(film),
        ]  # fmt: skip
        done = subprocess.run(command, input=raw, capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"ffmpeg failed: {done.stderr.decode(errors='replace').strip()}")
        write_atomically(path, [film.read_bytes()])


def write_gif(path: StrPath, pictures: list[Any], frames_per_second: float = 25) -> None:
    """Write pictures as a GIF that repeats forever, atomically."""
    from PIL import Image  # noqa: PLC0415 - slow to import

    # One palette for all, so that colours do not flicker: that of some of them side by side.
    some = [np.asarray(p) for p in pictures[:: max(1, len(pictures) // 8)]]
    palette = Image.fromarray(np.concatenate(some)).quantize(128)
    flat = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    content = io.BytesIO()
    flat[0].save(
        content, format="GIF", save_all=True, append_images=flat[1:], loop=0,
        duration=round(1000 / frames_per_second), optimize=True,
    )  # fmt: skip
    write_atomically(path, [content.getvalue()])
