"""Downloads missing files of a data set; they are verified before they reach the data folder."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coevo._validation import check_real
from coevo.datasets.content import (
    Place,
    check_content,
    find_members,
    read_places,
)
from coevo.datasets.errors import DownloadError, WrongContentError
from coevo.datasets.folder import (
    VARIABLE,
    Status,
    find,
    import_pooch,
    missing_data,
    refusing,
    status,
)
from coevo.datasets.sources import Download, File, Source, source_of

Progress = Callable[[str, int, int | None], None]
"""Called during a download with the file's name, the bytes so far, and in all if known."""

_CHUNK = 1 << 16


def fetch(
    name: str,
    folder: str | Path | None = None,
    *,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> Status:
    """Download what is missing of a data set and verify what is there.

    A file with the right content is never fetched again, so an interrupted `fetch` goes on where
    it stopped. A file with wrong content is refused and not overwritten.

    Parameters
    ----------
    name
        The data set.
    folder
        The data folder, as for `data_folder`.
    timeout
        Seconds without data after which a server is given up.
    progress
        Called during each download.

    Returns
    -------
    the state of the data set now
    """
    check_real("timeout", timeout, 0, above=True)
    source = source_of(name)
    _refuse_wrong_files(source, folder)
    before = status(name, folder)
    if before.is_complete or before.folder is None:
        return before
    if not source.downloads:
        raise missing_data(source, before.missing, before.folder)
    target_folder = before.folder / source.folders[0]
    for download in source.downloads:
        if not set(before.missing).isdisjoint(download.provides):
            _fetch_one(source, download, target_folder, timeout, progress)
    return status(name, folder)


def _refuse_wrong_files(source: Source, folder: str | Path | None) -> None:
    files = {file.path: file for file in source.files}
    places = find(source.name, folder)
    with refusing(source.name):
        for path, content in read_places(places):
            check_content(files[path], places[path], content)


def _fetch_one(
    source: Source, download: Download, folder: Path, timeout: float, progress: Progress | None
) -> None:
    """Download one file from the first address that serves the right content."""
    target = folder / download.name
    files = {file.path: file for file in source.files if file.path in download.provides}
    failures = []
    for address in download.addresses:
        with _new_file(source.name, target) as part:
            try:
                _receive(address, part, timeout, progress)
                _check_download(part, files)
            except (OSError, WrongContentError) as error:  # OSError: also all that requests raises
                failures.append(f"from {address}: {_reason(error, part, timeout)}")
                continue
            part.replace(target)
            return
    raise DownloadError(
        f"{source.name}: {download.name} could not be downloaded, and nothing was written to "
        f"{folder}; {'; '.join(failures)}. Try again later, or put the file there by hand"
    )


@contextmanager
def _new_file(name: str, target: Path) -> Iterator[Path]:
    """Yield a temporary path beside the target; it is removed afterwards unless renamed."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=".coevo-", dir=target.parent)
    except OSError as error:
        raise DownloadError(
            f"{name}: {target.name} cannot be written to {target.parent} ({error.strerror}); set "
            f"{VARIABLE} to a folder where you may write"
        ) from None
    with folder:
        yield Path(folder.name) / target.name


def _receive(address: str, path: Path, timeout: float, progress: Progress | None) -> None:
    receive = import_pooch().HTTPDownloader(
        progressbar=_ProgressBar(path.name, progress) if progress else False,
        chunk_size=_CHUNK,
        timeout=timeout,
        headers={"Accept-Encoding": "identity"},
    )
    receive(address, str(path), None)


def _check_download(path: Path, files: dict[str, File]) -> None:
    """Raise unless a download has, or as a zip holds, the published content of all its files."""
    if path.suffix == ".zip":
        places = find_members(path, files)
        absent = [name for name in files if files[name].required and name not in places]
        if absent:
            raise WrongContentError(f"{path} does not hold {', '.join(absent)}")
    else:
        places = {name: Place(path) for name in files}
    for name, content in read_places(places):
        check_content(files[name], places[name], content)


def _reason(error: Exception, path: Path, timeout: float) -> str:
    """Return why a download failed, in plain words."""
    text = str(error).replace(str(path), path.name)
    if "timed out" in text:
        return f"the server was silent for {timeout:g} s"
    cut = re.search(r"IncompleteRead\((.*?)\)", text)
    return f"the connection broke too early ({cut[1]})" if cut else text


class _ProgressBar:
    """A progress bar for pooch that calls a function."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.total = 0
        self._name = name
        self._progress = progress
        self._received = 0

    def update(self, n_bytes: int) -> None:
        """Count what has arrived."""
        self._received += n_bytes
        if self.total:  # pooch counts whole chunks, also for the last one
            self._received = min(self._received, self.total)
        self._progress(self._name, self._received, self.total or None)

    def reset(self) -> None:
        """Start over: at the end pooch resets the bar and adds the total once more."""
        self._received = 0 if self.total else self._received

    def close(self) -> None:
        """Pooch calls it; nothing is open."""
