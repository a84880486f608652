"""The files of a run folder, which a training leaves behind."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevo._typing import Array
from coevo.persistence.atomic import write_atomically
from coevo.persistence.checkpoint import previous_path

MODEL = "model.safetensors"


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run; `made` has the folders that were made for it, innermost first."""

    path: Path
    made: tuple[Path, ...] = ()

    @property
    def settings(self) -> Path:
        """The job, with every default filled in."""
        return self.path / "settings.toml"

    @property
    def checkpoint(self) -> Path:
        """The state of the search, from which it can be resumed."""
        return self.path / "search.checkpoint"

    @property
    def model(self) -> Path:
        """The network and its preprocessing."""
        return self.path / MODEL

    @property
    def metrics(self) -> Path:
        """All figures of the run, as JSON."""
        return self.path / "metrics.json"

    @property
    def history(self) -> Path:
        """A row for each generation."""
        return self.path / "history.csv"

    @property
    def learning_curve(self) -> Path:
        """The history as a figure."""
        return self.path / "learning_curve.png"

    @property
    def report(self) -> Path:
        """All of it on one page."""
        return self.path / "report.html"

    @classmethod
    def begin(cls, path: Path) -> RunFolder:
        """Make the folder of a new run; one that is there already must be empty."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            advice = "; choose another --output"
            if (path / "settings.toml").exists():
                advice += f", or go on with --resume {path}"
            raise FileExistsError(f"{path} is there already and is not an empty folder{advice}")
        missing = tuple(folder for folder in (path, *path.parents) if not folder.exists())
        path.mkdir(parents=True, exist_ok=True)
        return cls(path, missing)

    @classmethod
    def resume(cls, path: Path) -> RunFolder:
        """Return the folder of a run that has begun."""
        folder = cls(path)
        if not folder.settings.is_file():
            raise FileNotFoundError(
                f"{path} is not a run folder: there is no {folder.settings.name} in it"
            )
        return folder

    def discard(self) -> None:
        """Remove what a run that failed has made, and nothing else."""
        for file in (self.settings, self.checkpoint, previous_path(self.checkpoint)):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # something else is in it
            for folder in self.made:
                folder.rmdir()

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Write the figures."""
        write_atomically(self.metrics, [json.dumps(metrics, indent=2, allow_nan=False).encode()])

    def read_metrics(self) -> dict[str, Any] | None:
        """Return the figures, None if there are none."""
        if not self.metrics.is_file():
            return None
        try:
            metrics = json.loads(self.metrics.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{self.metrics} is not as coevo writes it: {error}") from None
        return metrics if isinstance(metrics, dict) else None

    def write_history(self, columns: Mapping[str, Array]) -> None:
        """Write the history, a row for each generation."""
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines = [",".join(columns), *(",".join(map(repr, row)) for row in rows), ""]
        write_atomically(self.history, ["\n".join(lines).encode()])


def default_path(data: str) -> Path:
    """Return runs/NAME-DATE-TIME for a data file, with a number if that is taken."""
    name = re.sub(r"\W+", "-", Path(data).name.split(".")[0]).strip("-") or "run"
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    path, number = Path("runs") / f"{name}-{now}", 2
    while path.exists():
        path, number = path.with_name(f"{name}-{now}-{number}"), number + 1
    return path


def find_model(given: Path) -> Path:
    """Return the model file that a path stands for: itself, or the one in a run folder."""
    if given.is_dir():
        model = given / MODEL
        if not model.is_file():
            raise FileNotFoundError(f"there is no {MODEL} in the folder {given}")
        return model
    if not given.is_file():
        raise FileNotFoundError(f"there is no model at {given}")
    return given


def is_model(given: Path) -> bool:
    """Whether a path looks like a model file or a run folder."""
    return (given / MODEL).is_file() or given.suffix == Path(MODEL).suffix
