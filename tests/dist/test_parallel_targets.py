"""The widest target of all processors of a cluster: of one architecture, of those that answer in time."""

from types import SimpleNamespace

import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

from cgraph.kernels.isa.architectures import host_architecture
from cgraph.kernels.target import host_target
from nn.parallel import targets

TARGETS = [x.name for x in host_architecture().targets]
OWN = host_architecture().name


def test_this_machine_has_the_kind_of_its_processor():
    assert targets.own_kind() == (OWN, host_target().name)


@pytest.mark.parametrize("own", TARGETS)
@pytest.mark.parametrize("other", TARGETS)
def test_the_narrower_of_two_targets_runs_on_both_and_another_architecture_does_not_count(own, other):
    narrower = targets.least_of((OWN, own), [(OWN, other)])
    assert narrower == targets.least_of((OWN, other), [(OWN, own)]) in (own, other)
    assert targets.least_of((OWN, own), [("another", other)]) == targets.least_of((OWN, own), []) == own
    assert targets.least_of((OWN, own), [("another", "x"), (OWN, own), (OWN, other)]) == narrower


class Asked:
    """A task on a worker: done or not, with its answer. Changes: when it is cancelled."""

    status = "finished"

    def __init__(self, answer):
        self.answer, self.cancelled = answer, False

    def done(self):
        return self.answer != "silent"

    def cancel(self):
        self.cancelled = True


def kinds(answers, monkeypatch, leaving=()):
    """The kinds of workers with these answers, some of which leave the cluster after the first look, and the tasks."""
    tasks, looks, clock = {}, [], iter(range(100))

    def submit(function, workers, **options):
        assert function is targets.own_kind
        assert options == {"allow_other_workers": False, "pure": False, "retries": 0}
        return tasks.setdefault(workers[0], Asked(answers[workers[0]]))

    def info(n_workers):
        looks.append(n_workers)
        return {"workers": {x: None for x in answers if len(looks) == 1 or x not in leaving}}

    monkeypatch.setattr(targets, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(targets, "wait_for_any", lambda futures: None)
    monkeypatch.setattr(targets, "answer", lambda task: task.answer)
    found = targets.kinds_of(SimpleNamespace(submit=submit, scheduler_info=info), 5)
    assert set(looks) == {-1}
    return found, {x: task.cancelled for x, task in tasks.items()}


def test_kinds_are_those_of_workers_that_answer_and_the_tasks_of_all_others_are_cancelled(monkeypatch):
    answers = {"a": (OWN, "x"), "b": None, "c": "silent", "d": ("another", "y")}
    found, cancelled = kinds(answers, monkeypatch)
    assert sorted(found) == sorted([(OWN, "x"), ("another", "y")])
    assert cancelled == {"a": False, "b": False, "c": True, "d": False}


def test_a_worker_that_leaves_is_not_waited_for(monkeypatch):
    found, cancelled = kinds({"a": "silent", "b": (OWN, "x")}, monkeypatch, leaving=("a",))
    assert found == [(OWN, "x")] and cancelled == {"a": True, "b": False}
    assert kinds({}, monkeypatch) == ([], {})
