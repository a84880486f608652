"""coevo export."""

import io

import numpy as np
import pandas as pd
import pytest


def test_export_takes_the_columns(house, coevo, tmp_path, make_shop, brief):
    onnxruntime = pytest.importorskip("onnxruntime")
    folder, _, _ = house
    done = coevo("export", folder / "run", "--onnx", "--output", "m.onnx")
    assert "input 'age': float64, NaN if missing" in done.stdout
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    frame = make_shop()
    label, probabilities = session.run(
        ["label", "probabilities"],
        {
            "age": frame[["age"]].to_numpy(),
            "town": frame[["town"]].fillna("").to_numpy(dtype=object),
        },
    )
    frame.to_csv("a.csv", index=False)
    ours = pd.read_csv(io.StringIO(coevo("predict", folder / "run", "a.csv", "--proba").stdout))
    assert label.tolist() == ours["prediction"].tolist()
    assert np.allclose(probabilities, ours.iloc[:, 1:], atol=1e-9)
    number = coevo("train", "a.csv", "--target", "spent", *brief, "--output", "r")
    assert number.exit_code == 0
    assert coevo("export", "r", "--onnx").exit_code == 0
    session = onnxruntime.InferenceSession("r/model.onnx", providers=["CPUExecutionProvider"])
    (output,) = session.run(
        ["output"],
        {
            "age": frame[["age"]].to_numpy(),
            "town": frame[["town"]].fillna("").to_numpy(dtype=object),
            "bought": frame[["bought"]].to_numpy(dtype=object),
        },
    )
    ours = pd.read_csv(io.StringIO(coevo("predict", "r", "a.csv").stdout))
    assert np.allclose(output[:, 0], ours["prediction"])


def test_dates_and_numbers_in_disguise_are_kept_in_the_model(coevo, tmp_path, brief, rng):
    onnxruntime = pytest.importorskip("onnxruntime")
    days = pd.Series(pd.date_range("2019-03-01 07:00", periods=200, freq="61h"))
    price = rng.integers(1_000, 9_000, 200)
    frame = pd.DataFrame({"when": days.dt.strftime("%d/%m/%Y %H:%M"), "rate": "5%"})
    frame["price"] = [f"${number:,}" for number in price]
    frame["y"] = np.where(price > 5_000, "dear", "cheap")
    frame.loc[3, "when"] = None
    frame.to_csv("t.csv", index=False)
    done = coevo("train", "t.csv", "--target", "y", *brief, "--output", "o")
    assert "1 numeric columns, 1 of dates ('when')" in done.stdout
    assert "note: 'price' is read as numbers: '$" in done.stdout
    assert "note: 'when' is read as dates: '01/03/2019 07:00' is 2019-03-01T07:00:00" in done.stdout
    shown = coevo("inspect", "o").stdout
    assert (
        "'when': dates in format %d/%m/%Y %H:%M: year, month, day of week, hour, elapsed" in shown
    )
    ours = pd.read_csv(io.StringIO(coevo("predict", "o", "t.csv", "--proba").stdout))
    # A table of one row has the same notation, though nothing in it tells.
    frame.iloc[:1].to_csv("one.csv", index=False)
    first = pd.read_csv(io.StringIO(coevo("predict", "o", "one.csv", "--proba").stdout))
    pd.testing.assert_frame_equal(first, ours.iloc[:1])
    frame.iloc[:3].assign(when="soon").to_csv("bad.csv", index=False)
    refused = coevo("predict", "o", "bad.csv")
    assert refused.exit_code == 2
    assert "must hold dates written as %d/%m/%Y %H:%M and holds 'soon' in row 1" in refused.stderr
    done = coevo("export", "o", "--onnx", "--output", "m.onnx")
    assert "input 'when': seconds since 1970 (UTC) as float64, NaN if missing" in done.stdout
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    seconds = (days - pd.Timestamp(0)) / pd.Timedelta(seconds=1)
    seconds[3] = np.nan
    inputs = {"when": seconds.to_numpy()[:, None], "price": price[:, None].astype(float)}
    (probabilities,) = session.run(["probabilities"], inputs)
    assert np.allclose(probabilities, ours.iloc[:, 1:], atol=1e-9)
