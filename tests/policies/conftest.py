"""Small environments. Factories are closures, which are sent to workers by value."""

import pytest


@pytest.fixture(scope="session")
def make_target_env():
    """A factory of environments in which a point should be moved to a target, 10 steps long.

    Keyword arguments make it misbehave: `breaks(env, step)` is called before each step returns and
    may return what it should return instead.
    """
    gymnasium = pytest.importorskip("gymnasium", reason="needs the extra coevo[control]")
    import numpy as np

    def make_factory(breaks=None, observation_space=None, action_space=None):
        spaces = gymnasium.spaces

        class Target(gymnasium.Env):
            def __init__(self):
                self.observation_space = observation_space or spaces.Box(-9, 9, (2,))
                self.action_space = action_space or spaces.Box(-1, 1, (1,))

            def reset(self, *, seed=None, options=None):
                super().reset(seed=seed)
                self.place, self.target = self.np_random.uniform(-1, 1, 2)
                self.n_steps = 0
                return self._observe(), {}

            def _observe(self):
                return np.array([self.place, self.target], dtype=np.float32)

            def step(self, action):
                self.n_steps += 1
                self.place += 0.3 * float(np.ravel(action)[0])
                distance = abs(self.place - self.target)
                answer = self._observe(), -distance, self.n_steps == 10, False, {}
                return (breaks and breaks(self, answer)) or answer

        return Target

    return make_factory
