import pytest

from nn.stopping import Below, Early


@pytest.mark.parametrize(
    ("losses", "stops"), [([], False), ([1.0], False), ([0.4], True), ([0.4, 0.6], False), ([0.5], False)]
)
def test_below_looks_at_the_last_loss_alone(losses, stops):
    assert Below(0.5).stops(losses) is stops


@pytest.mark.parametrize(
    ("losses", "stops"),
    [
        ([3.0, 2.0, 1.0], False),
        ([1.0, 2.0, 2.0], True),
        ([1.0, 2.0, 0.5], False),
        ([1.0, 1.0, 1.0], True),
        ([], False),
    ],
)
def test_early_stops_when_the_best_loss_is_as_old_as_its_patience(losses, stops):
    assert Early(patience=2).stops(losses) is stops


def test_a_decrease_below_the_least_is_no_better_loss():
    assert Early(patience=2, least=0.1).stops([1.0, 0.95, 0.91])
    assert not Early(patience=2, least=0.1).stops([1.0, 0.95, 0.85])


def test_epochs_without_a_best_figure_count_from_the_first():
    nan = float("nan")
    assert [Early(patience=2).stops([nan] * count) for count in range(4)] == [False, False, True, True]
    assert [Early(patience=2).stops([1.0] + [nan] * count) for count in range(4)] == [False, False, True, True]
    assert [Early(patience=1).stops([nan] * count) for count in range(3)] == [False, True, True]
