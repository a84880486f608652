"""`coevo data` finds, fetches and verifies data sets."""


def test_data_commands(coevo, tmp_path, monkeypatch):
    monkeypatch.setenv("COEVO_DATA_HOME", str(tmp_path / "nothing"))
    listed = coevo("data", "list")
    assert "comes with scikit-learn" in listed.stdout
    assert "missing" in listed.stdout
    assert coevo("data", "fetch", "WBC").stdout == "WBC comes with scikit-learn\n"
    assert coevo("data", "verify").exit_code == 0
    wrong = coevo("data", "verify", "ESR")
    assert wrong.exit_code == 1
    assert "ESR: missing or not as published" in wrong.stdout


def test_unknown_data_set_gets_one_line(coevo):
    done = coevo("data", "fetch", "IRIS")
    assert done.exit_code == 2
    assert done.stderr.startswith("coevo: data set='IRIS' is unknown")


def test_every_command_has_an_example(coevo):
    for name in ("list", "fetch", "verify"):
        shown = coevo("data", name, "--help")
        assert shown.exit_code == 0
        assert f"Example: coevo data {name}" in shown.stdout
