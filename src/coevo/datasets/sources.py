"""The files of each data set: checksums, addresses, and where they are looked for."""

from __future__ import annotations

from dataclasses import dataclass

from coevo._validation import check_name


@dataclass(frozen=True)
class File:
    """One published file.

    Parameters
    ----------
    path
        Where it is within the data set's folder, without .gz.
    sha256
        Checksum of its content, uncompressed.
    required
        Whether the data set is incomplete without it.
    """

    path: str
    sha256: str
    required: bool = True


@dataclass(frozen=True)
class Download:
    """One file that a publisher serves.

    Parameters
    ----------
    name
        What it is called in the data set's folder.
    addresses
        Where it is served, the preferred address first.
    provides
        The paths of the files whose content it holds: its own, or those in a zip.
    """

    name: str
    addresses: tuple[str, ...]
    provides: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """Where a data set comes from.

    Parameters
    ----------
    folders
        Folders within the data folder that may hold its files, the one to write to first. Empty
        for a data set that scikit-learn ships.
    files
        Its files; none if scikit-learn ships it.
    archives
        Names of zips that may stand for the files, in any of the folders or the data folder itself.
    downloads
        How to get the files; empty if they cannot be downloaded.
    advice
        For users who lack the files and cannot download them.
    """

    name: str
    folders: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    archives: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    advice: str = ""


_ESR_CSV = "Epileptic Seizure Recognition.csv"
_HAR_ZIP = "human+activity+recognition+using+smartphones.zip"
_MNIST_ADDRESSES = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)

_ESR_FILES = (File(_ESR_CSV, "5ac55c71de5df20d2f47c39300c5b61df18ac5d1c40315e586310b794c32a98b"),)
_HAR_FILES = (
    File("train/X_train.txt", "9c1246099c8d5463779eec5a3845cc3898df9d8c715441ab2a1232d4421fc42f"),
    File("train/y_train.txt", "415b3357e2e2d5e70a45c781947c6bdd80e0410a579d862eedcd6bbce3c694ef"),
    File(
        "train/subject_train.txt",
        "66e1e2fbe9b396fa5155f531dc3348c803f503be663e2318772d49947db9153a",
    ),
    File("test/X_test.txt", "99035209add50d17650e847d8a4658d784a5707466ebb7c2deb97c28e5250a78"),
    File("test/y_test.txt", "2a94cb53ca46b956c1b2aebd4a09a72badd8a8e9ea9cdfe9f31b3306a08666bb"),
    File(
        "test/subject_test.txt",
        "63b8c577f4a85431c06bd87f6384608c90a9f72f05c7956dd21255dc63515c07",
    ),
    File(
        "features.txt",
        "b384889885b1c8680ecf250e0e605b4c79536cdf09ce9f2fa7225a3c6773b5c7",
        required=False,
    ),
)
_MNIST_FILES = (
    File(
        "train-images-idx3-ubyte",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    File(
        "train-labels-idx1-ubyte",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    File(
        "t10k-images-idx3-ubyte",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    File(
        "t10k-labels-idx1-ubyte",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
)

SOURCES: dict[str, Source] = {
    "WBC": Source("WBC"),
    "ESR": Source(
        "ESR",
        folders=("esr", "."),
        files=_ESR_FILES,
        advice=(
            "UCI has withdrawn this data set (its id was 388), so it cannot be downloaded from "
            f"here; get {_ESR_CSV!r} by hand, for instance from a copy on Kaggle"
        ),
    ),
    "HAR": Source(
        "HAR",
        folders=("har", "har/UCI HAR Dataset", "UCI HAR Dataset"),
        files=_HAR_FILES,
        archives=("UCI HAR Dataset.zip", _HAR_ZIP),
        downloads=(
            Download(
                _HAR_ZIP,
                (f"https://archive.ics.uci.edu/static/public/240/{_HAR_ZIP}",),
                tuple(file.path for file in _HAR_FILES),
            ),
        ),
    ),
    "MNIST": Source(
        "MNIST",
        folders=("mnist", "."),
        files=_MNIST_FILES,
        downloads=tuple(
            Download(
                f"{file.path}.gz",
                tuple(f"{address}{file.path}.gz" for address in _MNIST_ADDRESSES),
                (file.path,),
            )
            for file in _MNIST_FILES
        ),
    ),
    "digits": Source("digits"),
}
"""The data sets by name: the paper's four, and scikit-learn's digits as a quick one."""

NAMES = tuple(SOURCES)
"""The names of the data sets."""


def source_of(name: str) -> Source:
    """Return where a data set comes from, or raise if there is none of that name."""
    check_name("data set", name, SOURCES)
    return SOURCES[name]
