"""Jobs and their TOML files."""

import pytest

from coevo.tabular.job import Job, read_job, write_job


def test_a_job_comes_back_from_its_file(tmp_path):
    job = Job(data='a "b"\\ü\n\x7f.csv', target="y").with_changes(
        {
            "variant": "CCDE", "drop": ["é"], "task": "regression", "max_evaluations": "none",
            "max_seconds": 2.5, "hidden_layer_sizes": "4,3", "initial_range": "1,2,3", "seed": 7,
        }
    )  # fmt: skip
    assert job.settings["limited_evaluation"] is False
    write_job(tmp_path / "job.toml", job)
    assert read_job(tmp_path / "job.toml") == job


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "is not a TOML file"),
        ("bogus = 1", "'bogus' is unknown"),
        ("population_size = 2", "population_size must be at least 4"),
        ("population_size = 'x'", "must be a whole number"),
        ("task = 'clustering'", "--task='clustering' is unknown"),
        ("test_fraction = 1.5", "--test-fraction must be"),
        ("drop = 'a'", "drop must be a list of texts"),
        ("target = 3", "target must be a text"),
        ("variant = 'XDE'", "variant='XDE' is unknown"),
        ("variant = 'DE'\nlimited_evaluation = true", "contradicts variant='DE'"),
    ],
)
def test_a_bad_config_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        read_job(path)
    assert "c.toml" in str(caught.value)


def test_columns_of_dates():
    job = Job(date=("a", "b=%d/%m/%Y", "c=d"))
    assert job.dates == {"a": None, "b": "%d/%m/%Y", "c=d": None}
    with pytest.raises(ValueError, match=r"--date 'a=%Q' has a format that makes no sense"):
        Job(date=("a=%Q",))
    with pytest.raises(ValueError, match="--date and --categorical or --drop both name 'a'"):
        Job(date=("a",), drop=("a",))
