"""Finds the data folder and the files in it, and verifies them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevo.datasets.content import Place, check_content, checksum, find_members, read_places
from coevo.datasets.errors import MissingDataError, WrongContentError
from coevo.datasets.sources import Source, source_of

VARIABLE = "COEVO_DATA_HOME"
"""The environment variable that names the data folder."""


@dataclass(frozen=True)
class Status:
    """Which files of a data set are there.

    Parameters
    ----------
    name
        The data set.
    folder
        Where it was looked for, None if scikit-learn ships it.
    places
        Where each file that was found is kept.
    missing
        The required files that were not found.
    is_downloadable
        Whether `fetch` can get what is missing.
    """

    name: str
    folder: Path | None
    places: dict[str, Place]
    missing: tuple[str, ...]
    is_downloadable: bool

    @property
    def is_complete(self) -> bool:
        """Whether every required file is there; `verify` says whether they are right."""
        return not self.missing


@dataclass(frozen=True)
class Check:
    """The result of verifying one file.

    Parameters
    ----------
    file
        The file, by its path within the data set's folder.
    place
        Where it was found, None if it was not.
    expected, found
        SHA-256 of the published content and of what is there; `found` is None without a place.
    """

    file: str
    place: Place | None
    expected: str
    found: str | None

    @property
    def is_right(self) -> bool:
        """Whether the file is there with the published content."""
        return self.found == self.expected


def import_pooch() -> Any:
    """Return pooch, imported only when a download or the user's cache folder needs it."""
    try:
        return importlib.import_module("pooch")
    except ImportError:
        raise ImportError(
            "downloads and the cache folder of the user need pooch: install it with "
            f"`pip install pooch`, or set {VARIABLE} to a folder that holds the data sets"
        ) from None


def data_folder(folder: str | Path | None = None) -> Path:
    """Return the folder that holds the data sets: the one given, or the default.

    Parameters
    ----------
    folder
        The folder; if None, the one that `COEVO_DATA_HOME` names, or else a cache folder of the
        user's. It need not exist.
    """
    chosen = folder or os.environ.get(VARIABLE)
    return Path(chosen or import_pooch().os_cache("coevo")).expanduser()


def find(name: str, folder: str | Path | None = None) -> dict[str, Place]:
    """Return where the files of a data set are; those not found are left out."""
    source = source_of(name)
    return _find(source, data_folder(folder)) if source.files else {}


def _find(source: Source, home: Path) -> dict[str, Place]:
    folders = [home / folder for folder in source.folders]
    places = {}
    for file in source.files:
        options = [option for folder in folders for option in _forms(folder / file.path)]
        place = next((option for option in options if option.is_file()), None)
        if place is not None:
            places[file.path] = Place(place)
    zips = [folder / archive for archive in source.archives for folder in (*folders, home)]
    for path in filter(Path.is_file, zips):
        wanted = [file for file in source.files if file.path not in places]
        if any(file.required for file in wanted):
            with refusing(source.name):
                places |= find_members(path, [file.path for file in wanted])
    return places


def _forms(path: Path) -> tuple[Path, Path]:
    return path, path.with_name(f"{path.name}.gz")


def status(name: str, folder: str | Path | None = None) -> Status:
    """Return which files of a data set are there, without reading them.

    The arguments are as for `fetch`.
    """
    source = source_of(name)
    if not source.files:
        return Status(name, None, {}, (), is_downloadable=False)
    home = data_folder(folder)
    places = _find(source, home)
    missing = tuple(file.path for file in source.files if file.required and file.path not in places)
    return Status(name, home, places, missing, is_downloadable=bool(source.downloads))


def verify(name: str, folder: str | Path | None = None) -> tuple[Check, ...]:
    """Compare the content of every file of a data set with what was published.

    Returns
    -------
    one check for each required file and for each other file that is there; none for a data set
    that scikit-learn ships
    """
    places = find(name, folder)
    with refusing(name):
        found = {path: checksum(content) for path, content in read_places(places)}
    return tuple(
        Check(file.path, places.get(file.path), file.sha256, found.get(file.path))
        for file in source_of(name).files
        if file.required or file.path in found
    )


def read(name: str, paths: Sequence[str], folder: str | Path | None = None) -> dict[str, bytes]:
    """Return the verified content of some files of a data set; optional ones may be left out."""
    source = source_of(name)
    files = {file.path: file for file in source.files if file.path in paths}
    places = find(name, folder)
    missing = [path for path in files if files[path].required and path not in places]
    if missing:
        raise missing_data(source, missing, data_folder(folder))
    wanted = {path: places[path] for path in files if path in places}
    contents = {}
    with refusing(name):
        for path, content in read_places(wanted):
            check_content(files[path], wanted[path], content)
            contents[path] = content
    return contents


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Add the data set, and what to do, to errors about files in the data folder."""
    try:
        yield
    except WrongContentError as error:
        raise WrongContentError(
            f"{name} is refused: {error}. Replace that file by the publisher's, or remove it and "
            "fetch the data set again"
        ) from None


def missing_data(source: Source, missing: Sequence[str], home: Path) -> MissingDataError:
    """Return the error that says which files are missing and where to put them."""
    looked = ", ".join(str(home / folder) for folder in source.folders)
    accepted = "plain or as .gz" + (
        f", or one of the zips {', '.join(map(repr, source.archives))}" if source.archives else ""
    )
    advice = source.advice or "it can be downloaded: fetch the data set, or get the files by hand"
    return MissingDataError(
        f"{source.name}: {', '.join(missing)} not found in {looked}. {advice[0].upper()}"
        f"{advice[1:]}, and put the files, {accepted}, into {home / source.folders[0]} "
        f"(set {VARIABLE} to use another data folder than {home})"
    )
