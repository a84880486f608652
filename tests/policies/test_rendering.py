import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from coevo import Architecture, Network, Policy
from coevo.policies import rendering
from coevo.policies.rendering import check_film

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra coevo[control]")


@pytest.fixture
def policy():
    class Fading(gymnasium.Env):
        """Gets brighter for ten steps."""

        metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012
        observation_space = gymnasium.spaces.Box(-1, 1, (2,))
        action_space = gymnasium.spaces.Discrete(2)

        def __init__(self, render_mode=None, draws=True):
            self.draws = draws

        def reset(self, *, seed=None, options=None):
            self.n_steps = 0
            return np.zeros(2), {}

        def step(self, action):
            self.n_steps += 1
            return np.zeros(2), 1.5, self.n_steps == 10, False, {}

        def render(self):
            return np.full((300, 640, 3), 25 * self.n_steps, np.uint8) if self.draws else None

    network = Network(Architecture(2, (), 2), np.zeros(6))
    box = {"space": "Box", "shape": [2]}
    return Policy(network, box, {"space": "Discrete", "n": 2, "start": 0}, env=Fading)


def test_an_episode_as_a_gif(policy, tmp_path):
    path = tmp_path / "episode.gif"
    assert policy.record(path) == 15
    with Image.open(path) as gif:
        assert gif.size == (320, 150)
        assert gif.n_frames == 6  # every second of ten steps, and the start
        shades = []
        for frame in range(gif.n_frames):
            gif.seek(frame)
            shades.append(np.asarray(gif.convert("L")).mean())
    assert shades == sorted(shades)
    assert shades[-1] > shades[0]
    assert policy.record(path, max_steps=3) == 4.5


def test_an_environment_that_draws_nothing_is_refused(policy, tmp_path):
    with pytest.raises(ValueError, match=r"env.render\(\) must give an array"):
        policy.record(tmp_path / "episode.gif", env_kwargs={"draws": False})
    assert not list(tmp_path.iterdir())


def test_an_episode_as_an_mp4(policy, tmp_path):
    try:
        check_film("film.mp4")
    except ImportError:
        pytest.skip("needs the extra coevo[video]")
    path = tmp_path / "episode.mp4"
    assert policy.record(path) == 15
    command = [rendering._find_ffmpeg(), "-i", path, "-f", "rawvideo", "-pix_fmt", "gray", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    frames = np.frombuffer(raw, np.uint8).reshape(-1, 150, 320)
    shades = frames.mean(axis=(1, 2))
    assert len(shades) == 6  # every second of ten steps, and the start
    assert np.all(np.diff(shades) > 20)
    assert list(tmp_path.iterdir()) == [path]


def test_an_mp4_without_ffmpeg_says_what_to_install(policy, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ImportError, match=r"an MP4 needs ffmpeg: pip install 'coevo\[video\]'"):
        policy.record(tmp_path / "episode.mp4")
    assert not list(tmp_path.iterdir())


def test_an_error_of_ffmpeg_is_told(policy, tmp_path, monkeypatch):
    monkeypatch.setattr(rendering, "_find_ffmpeg", lambda: sys.executable)
    with pytest.raises(RuntimeError, match=r"ffmpeg failed: .+"):
        policy.record(tmp_path / "episode.mp4")
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named_before_the_episode(policy, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path: the folder .*none does not exist"):
        policy.record(tmp_path / "none" / "episode.gif")


def test_other_films_are_refused(policy, tmp_path):
    with pytest.raises(ValueError, match=r"path must end in \.gif or \.mp4, got '.*episode.avi'"):
        policy.record(tmp_path / "episode.avi")
