"""The statistics agree with values worked out by hand or by other code."""

import numpy as np
import pytest
from scipy.stats import ranksums

from coevo.study import Record, read_plan
from coevo.study.statistics import Reported, holm, median_interval, summarise


def test_holm_by_hand():
    # Sorted: 0.005 × 4, 0.011 × 3, 0.02 × 2, 0.9 × 1, never falling.
    assert holm([0.02, 0.005, 0.9, 0.011]) == pytest.approx([0.04, 0.02, 0.9, 0.033])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_median_interval():
    assert median_interval(np.array([5.0])) == (5.0, 5.0)
    values = np.random.default_rng(1).normal(10, 1, 200)
    low, high = median_interval(values)
    assert low < np.median(values) < high
    # For normal values the median's standard error is about 1.25 σ / √n.
    assert high - low == pytest.approx(2 * 1.96 * 1.25 / np.sqrt(200), rel=0.4)
    assert median_interval(values) == (low, high)


def test_table_of_made_up_runs(make_records):
    plan = read_plan("quick").only(["WBC"])
    offsets = {"DE": 0.0, "LEDE": 0.001, "CCDE": 0.1, "LECCDE": 0.1, "backprop": 0.2}
    records = make_records(plan, lambda label, seed: 0.7 + offsets[label] + 0.01 * seed)
    (table,) = summarise(plan, records)
    leccde = next(s for s in table.summaries if s.row.label == "LECCDE")
    de = table.summaries[0]
    cell = leccde.cells["test"]
    assert cell.median == pytest.approx(83)
    assert cell.deviation == pytest.approx(np.std([81, 82, 83, 84, 85], ddof=1))
    assert cell.verdict == "below"
    assert leccde.cells["train"].verdict == "within"  # 95.0 beside 96.24 ± 1.9
    assert de.relative_runtime == pytest.approx(4)
    assert de.paper_runtime == 2.12
    assert table.summaries[-1].evaluations is None
    pairs = {(pair.first, pair.second): pair for pair in table.comparisons}
    assert len(pairs) == 10
    assert pairs["DE", "backprop"].a12 == 0
    assert pairs["DE", "backprop"].size == "large"
    assert pairs["CCDE", "LECCDE"].a12 == 0.5
    assert pairs["CCDE", "LECCDE"].p == 1
    assert pairs["DE", "LECCDE"].is_significant is (pairs["DE", "LECCDE"].p < 0.05)


def test_rank_sum_agrees_with_scipys_other_one(make_records):
    rng = np.random.default_rng(3)
    plan = read_plan("paper").only(["HAR"])
    values = {(label, seed): rng.normal(0.9 + 0.005 * len(label), 0.01)
              for label in ("DE", "LEDE", "CCDE", "LECCDE", "backprop")
              for seed in range(1, 21)}  # fmt: skip
    (table,) = summarise(plan, make_records(plan, lambda label, seed: values[label, seed]))
    raw = [
        ranksums(
            [values[pair.first, s] for s in range(1, 21)],
            [values[pair.second, s] for s in range(1, 21)],
        ).pvalue
        for pair in table.comparisons
    ]
    # The one is exact, the other a normal approximation.
    assert [pair.p for pair in table.comparisons] == pytest.approx(holm(raw), abs=0.02)


def test_missing_and_failed_runs_are_counted(make_records):
    plan = read_plan("quick").only(["WBC"])
    records = make_records(plan, lambda label, seed: 0.9)
    first, second, *_ = plan.experiments[0].rows[0].runs
    del records[first.key]
    records[second.key] = Record(second, "failed", error="no")
    (table,) = summarise(plan, records)
    summary = table.summaries[0]
    assert (len(summary.outcomes), summary.n_failed, summary.n_missing) == (3, 1, 1)
    (empty,) = summarise(plan, {})
    assert empty.summaries[0].cells == {}
    assert empty.comparisons == ()


def test_runtime_of_a_share_of_the_budget_is_extrapolated(make_records):
    plan = read_plan("paper").only(["MNIST"])
    (table,) = summarise(plan, make_records(plan, lambda label, seed: 0.9))
    assert table.summaries[0].row.share == 0.12
    assert table.summaries[0].relative_runtime == pytest.approx(2.0 / 0.12 / 0.5)


@pytest.mark.parametrize(
    ("percent", "verdict"), [(91.0, "within"), (92.0, "within"), (92.1, "above"), (89.9, "below")]
)
def test_verdict(percent, verdict):
    assert Reported(91.0, 1.0).judge(percent) == verdict
    assert Reported(91.0, None).judge(percent) == "unknown"


def test_average_of_the_paper_is_compared_with_our_mean(make_records):
    plan = read_plan("paper").only(["MNIST"])
    accuracies = {1: 0.9079, 2: 0.9081, 3: 0.95}
    (table,) = summarise(plan, make_records(plan, lambda label, seed: accuracies[seed]))
    cell = next(s for s in table.summaries if s.row.label == "LECCDE").cells["test"]
    assert (cell.median, cell.mean) == (pytest.approx(90.81), pytest.approx(92.2))
    assert cell.verdict == "above"  # the median would be within 90.80 ± 0.15
