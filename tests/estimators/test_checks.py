"""scikit-learn's own checks of an estimator, all of them.

scikit-learn itself skips its check of array API input unless SCIPY_ARRAY_API is set before SciPy is
imported; the estimators compute with NumPy and claim nothing else.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from coevo import CoevoClassifier, CoevoRegressor

# A regressor as it is by default takes its time; the checks fit more than a hundred of them.
SMALL = {"hidden_layer_sizes": (10,), "max_evaluations": 10_000}

REASONS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "an instance of weight 2 and the same instance twice are as good in the mean, but random "
    "batches and the random validation split are drawn from different numbers of instances, so "
    "that the searches take different paths",
)


@parametrize_with_checks(
    [CoevoClassifier(), CoevoRegressor(**SMALL)],
    expected_failed_checks=lambda estimator: REASONS,
)
@pytest.mark.filterwarnings("ignore:in .* generations no network was better")  # random targets
def test_scikit_learns_checks(estimator, check):
    check(estimator)
