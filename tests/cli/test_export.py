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
