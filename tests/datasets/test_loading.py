"""Data sets are found in every form, verified, and read as the paper reads them."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coevo import PAPER, datasets
from coevo.datasets import loading, sources
from coevo.datasets.loading import read_idx

DATA_HOME = os.environ.get("COEVO_DATA_HOME")

OUTER_ZIP = "human+activity+recognition+using+smartphones.zip"
INNER_ZIP = "UCI HAR Dataset.zip"
CSV = "Epileptic Seizure Recognition.csv"

real_data = pytest.mark.skipif(
    not (DATA_HOME and Path(DATA_HOME, "har").is_dir()),
    reason="COEVO_DATA_HOME does not name a folder with the real data sets",
)


def idx(array):
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def har_contents(n_train=40, n_test=12, n_inputs=5):
    rng = np.random.default_rng(1)
    contents = {"features.txt": "".join(f"{i + 1} f{i}\n" for i in range(n_inputs)).encode()}
    for part, n, first in (("train", n_train, 1), ("test", n_test, 50)):
        X = "".join("  ".join(f"{v:15.7e}" for v in row) + "\n" for row in rng.normal(size=(n, 5)))
        contents[f"{part}/X_{part}.txt"] = X.encode()
        contents[f"{part}/y_{part}.txt"] = "".join(f"{i % 6 + 1}\n" for i in range(n)).encode()
        subjects = "".join(f"{first + i // 4}\n" for i in range(n))
        contents[f"{part}/subject_{part}.txt"] = subjects.encode()
    return contents


def mnist_contents():
    rng = np.random.default_rng(2)
    contents = {}
    for part, n in (("train", 30), ("t10k", 10)):
        contents[f"{part}-images-idx3-ubyte"] = idx(rng.integers(0, 256, (n, 4, 3)))
        contents[f"{part}-labels-idx1-ubyte"] = idx(np.arange(n) % 10)
    return contents


def esr_contents():
    rows = ["Unnamed,X1,X2,X3,y"]
    for i in range(50):
        recording = f"V1.{i // 5}" if i // 5 else "V1"
        rows.append(f"X{i % 5 + 1}.{recording},{i},{-i},{2 * i},{i // 5 % 5 + 1}")
    return {CSV: "\n".join(rows).encode()}


CONTENTS = {"HAR": har_contents(), "MNIST": mnist_contents(), "ESR": esr_contents()}


@pytest.fixture
def small_sources(monkeypatch):
    """The same data sets with a few made-up rows: only checksums and row counts differ."""
    for name, contents in CONTENTS.items():
        source = sources.SOURCES[name]
        files = tuple(
            replace(file, sha256=hashlib.sha256(contents[file.path]).hexdigest())
            for file in source.files
        )
        monkeypatch.setitem(sources.SOURCES, name, replace(source, files=files))
    monkeypatch.setattr(loading, "HAR_PAPER_ROWS", 30)


def write(folder, contents, form="plain"):
    for path, content in contents.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if form == "plain":
            target.write_bytes(content)
        else:
            target.with_name(target.name + ".gz").write_bytes(gzip.compress(content))


def zipped(contents):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in contents.items():
            archive.writestr(path, content)
    return buffer.getvalue()


def inner_zip(contents):
    clutter = {
        "__MACOSX/UCI HAR Dataset/train/._X_train.txt": b"clutter",
        "UCI HAR Dataset/train/Inertial Signals/body_acc_x_train.txt": b"not used",
    }
    return zipped(clutter | {f"UCI HAR Dataset/{path}": c for path, c in contents.items()})


def outer_zip(contents):
    return zipped({"UCI HAR Dataset.names": b"about", INNER_ZIP: inner_zip(contents)})


# Data sets that scikit-learn ships


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"), [("WBC", (569, 30), 2), ("digits", (1797, 64), 10)]
)
def test_shipped_data_sets_need_no_folder(name, shape, n_classes):
    dataset = datasets.load(name)
    assert dataset.inputs.shape == shape
    assert dataset.inputs.dtype == np.float32
    assert dataset.labels.dtype == np.int64
    assert sorted(set(dataset.labels)) == list(range(n_classes))
    assert len(dataset.class_names) == n_classes
    assert len(dataset.feature_names) == shape[1]
    status = datasets.status(name)
    assert status.is_complete
    assert status.folder is None
    assert datasets.verify(name) == ()
    assert datasets.fetch(name).is_complete


def test_paper_names_are_known():
    assert {experiment.dataset for experiment in PAPER.values()} <= set(datasets.NAMES)


@pytest.mark.parametrize("verb", ["load", "find", "status", "verify", "fetch"])
def test_unknown_name_lists_the_known_ones(verb):
    with pytest.raises(ValueError, match=r"'IRIS' is unknown.*WBC, ESR, HAR, MNIST, digits"):
        getattr(datasets, verb)("IRIS")


def test_unknown_selection():
    with pytest.raises(ValueError, match="selection='some' is unknown"):
        datasets.load("WBC", "some")


def test_import_is_light():
    code = (
        "import sys, coevo; before = set(sys.modules); import coevo.datasets; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "assert not new & {'sklearn', 'pooch', 'requests', 'scipy'}, new"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# Finding and reading, in every form


@pytest.mark.parametrize("form", ["plain", "gz"])
@pytest.mark.parametrize("subfolder", ["har", "har/UCI HAR Dataset", "UCI HAR Dataset"])
def test_har_in_folders(small_sources, tmp_path, form, subfolder):
    write(tmp_path / subfolder, CONTENTS["HAR"], form)
    check_har(tmp_path)


@pytest.mark.parametrize("subfolder", ["", "har"])
@pytest.mark.parametrize(("name", "pack"), [(OUTER_ZIP, outer_zip), (INNER_ZIP, inner_zip)])
def test_har_in_zips(small_sources, tmp_path, subfolder, name, pack):
    (tmp_path / subfolder).mkdir(exist_ok=True)
    (tmp_path / subfolder / name).write_bytes(pack(CONTENTS["HAR"]))
    check_har(tmp_path)


def check_har(folder):
    assert datasets.status("HAR", folder).is_complete
    assert all(check.is_right for check in datasets.verify("HAR", folder))
    assert len(datasets.verify("HAR", folder)) == 7
    paper = datasets.load("HAR", folder=folder, download=False)
    assert paper.inputs.shape == (30, 5)
    assert paper.is_official_test is None
    whole = datasets.load("HAR", "all", folder, download=False)
    assert whole.inputs.shape == (52, 5)
    assert whole.inputs.dtype == np.float32
    assert whole.feature_names == ("f0", "f1", "f2", "f3", "f4")
    assert whole.class_names[0] == "walking"
    assert whole.labels[:7].tolist() == [0, 1, 2, 3, 4, 5, 0]
    assert np.flatnonzero(whole.is_official_test).tolist() == list(range(40, 52))
    assert whole.groups[[0, 39, 40]].tolist() == [1, 10, 50]
    first = np.array(CONTENTS["HAR"]["train/X_train.txt"].split()[:5], dtype=np.float32)
    assert np.array_equal(whole.inputs[0], first)


def test_har_paper_rows_are_drawn_once(small_sources, tmp_path):
    write(tmp_path / "har", CONTENTS["HAR"])
    first, second = (datasets.load("HAR", folder=tmp_path) for _ in range(2))
    assert np.array_equal(first.inputs, second.inputs)
    assert len(np.unique(first.inputs, axis=0)) == 30
    # Pinned: these must stay the same rows in every version of everything.
    whole = datasets.load("HAR", "all", tmp_path).inputs
    left_out = [i for i in range(40) if not (first.inputs == whole[i]).all(axis=1).any()]
    assert left_out == [10, 11, 12, 14, 15, 18, 20, 22, 29, 36]


def test_har_paper_needs_the_training_files_only(small_sources, tmp_path):
    training = {p: c for p, c in CONTENTS["HAR"].items() if p.startswith("train/")}
    write(tmp_path / "har", training)
    dataset = datasets.load("HAR", folder=tmp_path, download=False)
    assert dataset.feature_names is None
    assert datasets.status("HAR", tmp_path).missing == (
        "test/X_test.txt", "test/y_test.txt", "test/subject_test.txt",
    )  # fmt: skip
    with pytest.raises(datasets.MissingDataError, match=r"test/X_test\.txt"):
        datasets.load("HAR", "all", tmp_path, download=False)


def test_files_of_others_in_the_data_folder_do_not_disturb(small_sources, tmp_path):
    (tmp_path / "features.txt").write_text("of something else")
    write(tmp_path / "har", CONTENTS["HAR"])
    check_har(tmp_path)


def test_loose_files_and_a_zip_complete_each_other(small_sources, tmp_path):
    write(tmp_path / "har", {"train/y_train.txt": CONTENTS["HAR"]["train/y_train.txt"]})
    (tmp_path / INNER_ZIP).write_bytes(inner_zip(CONTENTS["HAR"]))
    places = datasets.find("HAR", tmp_path)
    assert places["train/y_train.txt"].path.name == "y_train.txt"
    assert places["test/y_test.txt"].path.name == INNER_ZIP
    assert len(datasets.load("HAR", "all", tmp_path)) == 52


@pytest.mark.parametrize("form", ["plain", "gz"])
@pytest.mark.parametrize("subfolder", ["", "mnist"])
def test_mnist(small_sources, tmp_path, form, subfolder):
    write(tmp_path / subfolder, CONTENTS["MNIST"], form)
    paper = datasets.load("MNIST", folder=tmp_path, download=False)
    assert paper.inputs.shape == (30, 12)
    assert paper.inputs.dtype == np.float32
    assert paper.groups is None
    assert paper.is_official_test is None
    whole = datasets.load("MNIST", "all", tmp_path, download=False)
    assert whole.is_official_test.sum() == 10
    assert whole.labels[29:32].tolist() == [9, 0, 1]
    last = list(CONTENTS["MNIST"]["t10k-images-idx3-ubyte"][-12:])
    assert whole.inputs[-1].tolist() == last


def test_gzip_is_known_by_content_not_by_name(small_sources, tmp_path):
    for path, content in CONTENTS["MNIST"].items():
        (tmp_path / f"{path}.gz").write_bytes(content)
    assert len(datasets.load("MNIST", folder=tmp_path, download=False)) == 30


@pytest.mark.parametrize("form", ["plain", "gz"])
@pytest.mark.parametrize("subfolder", ["", "esr"])
def test_esr(small_sources, tmp_path, form, subfolder):
    write(tmp_path / subfolder, CONTENTS["ESR"], form)
    whole = datasets.load("ESR", "all", tmp_path)
    assert whole.inputs.shape == (50, 3)
    assert whole.inputs[7].tolist() == [7, -7, 14]
    assert len(whole.class_names) == 5
    assert np.bincount(whole.groups).tolist() == [5] * 10
    paper = datasets.load("ESR", folder=tmp_path)
    assert np.bincount(paper.labels).tolist() == [10, 10]
    assert paper.class_names == ("seizure", "tumour area")
    assert paper.feature_names == ("X1", "X2", "X3")
    for group in np.unique(paper.groups):
        assert len(set(paper.labels[paper.groups == group])) == 1


def test_data_home_is_the_default_folder(small_sources, tmp_path, monkeypatch):
    write(tmp_path / "home" / "esr", CONTENTS["ESR"])
    monkeypatch.setenv("COEVO_DATA_HOME", str(tmp_path / "home"))
    assert datasets.data_folder() == tmp_path / "home"
    assert len(datasets.load("ESR")) == 20
    assert datasets.data_folder(tmp_path) == tmp_path


def test_default_folder_is_a_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("COEVO_DATA_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.data_folder().name in {"coevo", "Cache"}


def test_without_pooch_the_error_says_what_to_do(monkeypatch):
    monkeypatch.delenv("COEVO_DATA_HOME")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install pooch.*COEVO_DATA_HOME"):
        datasets.data_folder()


# What is refused


def test_missing_esr_says_where_to_get_and_to_put_it(tmp_path):
    for call in (datasets.load, datasets.fetch):
        with pytest.raises(datasets.MissingDataError) as caught:
            call("ESR", folder=tmp_path)
        message = str(caught.value)
        for words in ("ESR", CSV, "Kaggle", str(tmp_path / "esr"), "COEVO_DATA_HOME", ".gz"):
            assert words in message
    assert not list(tmp_path.iterdir())


def test_missing_without_download_names_the_zips(tmp_path):
    with pytest.raises(datasets.MissingDataError, match="fetch the data set") as caught:
        datasets.load("HAR", folder=tmp_path, download=False)
    assert OUTER_ZIP in str(caught.value)


@pytest.mark.parametrize("form", ["plain", "gz"])
def test_wrong_content_is_refused(small_sources, tmp_path, form):
    wrong = CONTENTS["ESR"][CSV] + b"\nX1.V1.9,1,2,3,4"
    write(tmp_path / "esr", {CSV: wrong}, form)
    expected = sources.SOURCES["ESR"].files[0].sha256
    found = hashlib.sha256(wrong).hexdigest()
    for call in (datasets.load, datasets.fetch):
        with pytest.raises(datasets.WrongContentError) as caught:
            call("ESR", folder=tmp_path)
        for words in ("ESR is refused", str(tmp_path / "esr" / CSV), expected, found):
            assert words in str(caught.value)
    (check,) = datasets.verify("ESR", tmp_path)
    assert not check.is_right
    assert (check.expected, check.found) == (expected, found)


def test_verify_reports_missing_files(small_sources, tmp_path):
    write(tmp_path, {"t10k-labels-idx1-ubyte": CONTENTS["MNIST"]["t10k-labels-idx1-ubyte"]})
    checks = datasets.verify("MNIST", tmp_path)
    assert [check.is_right for check in checks] == [False, False, False, True]
    assert checks[0].place is None
    assert checks[0].found is None


@pytest.mark.parametrize("kept", [0.3, 0.999])
def test_gzip_cut_short_is_refused(small_sources, tmp_path, kept):
    write(tmp_path / "esr", CONTENTS["ESR"], "gz")
    path = tmp_path / "esr" / f"{CSV}.gz"
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(datasets.WrongContentError, match="expected"):
        datasets.load("ESR", folder=tmp_path)


@pytest.mark.parametrize("name", [OUTER_ZIP, INNER_ZIP])
def test_broken_zip_is_refused(small_sources, tmp_path, name):
    pack = outer_zip if name == OUTER_ZIP else inner_zip
    content = pack(CONTENTS["HAR"])
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(datasets.WrongContentError, match=r"HAR is refused.*not a complete zip"):
        datasets.load("HAR", folder=tmp_path, download=False)


def test_damaged_zip_member_is_refused(small_sources, tmp_path):
    content = bytearray(inner_zip(CONTENTS["HAR"]))
    at = content.index(b"UCI HAR Dataset/train/X_train.txt") + 200
    content[at : at + 20] = bytes(20)
    (tmp_path / INNER_ZIP).write_bytes(content)
    with pytest.raises(datasets.WrongContentError, match="HAR is refused"):
        datasets.load("HAR", folder=tmp_path, download=False)


def test_wrong_file_in_a_zip_is_refused(small_sources, tmp_path):
    wrong = CONTENTS["HAR"] | {"train/y_train.txt": b"1\n" * 40}
    (tmp_path / OUTER_ZIP).write_bytes(outer_zip(wrong))
    with pytest.raises(datasets.WrongContentError, match=r"train/y_train\.txt.*SHA-256"):
        datasets.load("HAR", folder=tmp_path)


def test_idx_checks_mark_and_length():
    good = idx(np.arange(6).reshape(2, 3))
    assert read_idx("some", good, 2).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(datasets.WrongContentError, match=r"some is no idx file.*00000802"):
        read_idx("some", good, 3)
    with pytest.raises(datasets.WrongContentError, match="no idx file"):
        read_idx("some", good[:7], 2)
    with pytest.raises(datasets.WrongContentError, match=r"shape \(2, 3\) but holds 5"):
        read_idx("some", good[:-1], 2)


# The real ones


@real_data
@pytest.mark.parametrize(
    ("name", "selection", "shape", "n_classes", "n_groups"),
    [
        ("ESR", "paper", (4600, 178), 2, 200),
        ("ESR", "all", (11_500, 178), 5, 500),
        ("HAR", "paper", (7144, 561), 6, 21),
        ("HAR", "all", (10_299, 561), 6, 30),
        ("MNIST", "paper", (60_000, 784), 10, None),
    ],
)
def test_real_data(name, selection, shape, n_classes, n_groups):
    dataset = datasets.load(name, selection, DATA_HOME, download=False)
    assert dataset.inputs.shape == shape
    assert np.isfinite(dataset.inputs).all()
    assert dataset.inputs.std() > 0
    assert sorted(set(dataset.labels)) == list(range(n_classes))
    assert len(dataset.class_names) == n_classes
    assert n_groups == (None if dataset.groups is None else len(np.unique(dataset.groups)))
    assert dataset.feature_names is None or len(dataset.feature_names) == shape[1]
    if selection == "paper":
        experiment = PAPER[name]
        assert len(dataset) == experiment.n_instances
        assert (shape[1], n_classes) == experiment.shape[::2]


@real_data
def test_real_har_rows_of_the_paper_are_pinned():
    dataset = datasets.load("HAR", folder=DATA_HOME, download=False)
    assert np.bincount(dataset.labels).tolist() == [1191, 1041, 962, 1251, 1332, 1367]


@real_data
@pytest.mark.parametrize("name", ["ESR", "HAR", "MNIST"])
def test_real_data_verify(name):
    assert all(check.is_right for check in datasets.verify(name, DATA_HOME))
    assert datasets.fetch(name, DATA_HOME).is_complete


@real_data
def test_real_esr_groups_are_recordings_in_one_piece():
    """A second goes on where the one before it in the same recording ended."""
    import re

    content = gzip.decompress(Path(DATA_HOME, "esr", f"{CSV}.gz").read_bytes()).decode()
    ids = [line.split(",", 1)[0] for line in content.splitlines()[1:]]
    seconds = np.array([int(re.match(r"X(\d+)\.", name)[1]) for name in ids])
    dataset = datasets.load("ESR", "all", DATA_HOME)
    order = np.lexsort((seconds, dataset.groups))
    steps = np.abs(dataset.inputs[order[1:], 0] - dataset.inputs[order[:-1], -1])
    is_same = np.diff(dataset.groups[order]) == 0
    assert np.median(steps[is_same]) < 0.3 * np.median(steps[~is_same])
