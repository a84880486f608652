"""Exports a pipeline, scaler and evolved network, as one ONNX graph and runs it in onnxruntime.

Needs onnx, skl2onnx and onnxruntime. Run it with

    python examples/pipeline_to_onnx.py
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coevo import CoevoClassifier, export_onnx

SEED = 0


def draw(path: Path, ours: np.ndarray, theirs: np.ndarray, is_malignant: np.ndarray) -> None:
    """Draw the probability of a malignant tumour in onnxruntime against that in scikit-learn."""
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    axes.plot([0, 1], [0, 1], color="#999999", lw=1)
    for label, rows, color, marker in (
        ("benign", ~is_malignant, "#0072B2", "o"), ("malignant", is_malignant, "#D55E00", "^"),
    ):  # fmt: skip
        axes.plot(ours[rows], theirs[rows], marker, color=color, ms=5, alpha=0.6, label=label)
    axes.set(xlabel="probability in scikit-learn", ylabel="in onnxruntime")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=100_000)
    parser.add_argument("--picture", type=Path, help="draw the outcome to this file")
    arguments = parser.parse_args()
    budget = arguments.evaluations
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.array(["malignant", "benign"])[y]
    X_train, X_test, y_train, y_test = train_test_split(X, labels, stratify=y, random_state=SEED)
    pipeline = make_pipeline(
        StandardScaler(), CoevoClassifier((20,), max_evaluations=budget, random_state=SEED)
    ).fit(X_train, y_train)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.onnx"
        export_onnx(pipeline, path)
        size = path.stat().st_size
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        inputs = X_test.astype(np.float32)
        found, probabilities = session.run(["label", "probabilities"], {"input": inputs})
    expected = pipeline.predict_proba(inputs)
    difference = np.abs(probabilities - expected).max()
    print(f"accuracy {np.mean(found == y_test):.3f} on {len(y_test)} test instances in onnxruntime")
    print(f"{np.mean(found == pipeline.predict(inputs)):.0%} of the labels are scikit-learn's")
    print(f"largest difference of a probability: {difference:.1e}; the file has {size} bytes")
    if arguments.picture:
        draw(arguments.picture, expected[:, 1], probabilities[:, 1], y_test == "malignant")


if __name__ == "__main__":
    main()
