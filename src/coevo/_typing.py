"""Types that all packages use."""

from __future__ import annotations

import os
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
StrPath = str | os.PathLike[str]
