"""Finds, verifies, reads and splits the paper's data sets.

Files are looked for in the folder that `COEVO_DATA_HOME` names, or else in the user's cache.
Missing files are downloaded where their publisher still offers them. Only files with the published
checksum are read.
"""

from coevo.datasets.content import Place
from coevo.datasets.download import fetch
from coevo.datasets.errors import (
    DatasetError,
    DownloadError,
    MissingDataError,
    WrongContentError,
)
from coevo.datasets.folder import Check, Status, data_folder, find, status, verify
from coevo.datasets.loading import Dataset, load
from coevo.datasets.sources import NAMES
from coevo.datasets.splitting import INPUT_RANGES, Part, Split, split

__all__ = [
    "INPUT_RANGES",
    "NAMES",
    "Check",
    "Dataset",
    "DatasetError",
    "DownloadError",
    "MissingDataError",
    "Part",
    "Place",
    "Split",
    "Status",
    "WrongContentError",
    "data_folder",
    "fetch",
    "find",
    "load",
    "split",
    "status",
    "verify",
]
