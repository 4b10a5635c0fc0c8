"""Several Vars change together or not at all, whatever gives them their values, and a run reads no mixture."""

import ast
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.formats.model import Model
from cgraph.storage.cell import CellValue, assign_all
from nn.checkpoint import Checkpoint
from nn.losses import cross_entropy
from nn.models.decoder import gpt
from nn.settings import StepSettings, TrainSettings
from nn.step import training_step
from nn.training_run import TrainingRun
from tests.support.injection import FOLDERS, Lines, events, no_memory
from tests.support.patience import PATIENCE
from tests.support.transactions import SAMPLED, Scenario, check_lines, in_time, var

HELD_BY_NOBODY_ELSE = {
    ("quantiser/observe.py", "limits"),
    ("quantiser/observe.py", "histograms"),
    ("optim/optimiser.py", "state"),
    ("accumulation.py", "sum_variables"),
}
"""Functions that make new Vars in a loop, each with its first value."""
ONE_PER_ROUND = {("quantiser/simulate.py", "correct")}
"""Functions that run something between two assignments."""


class Numbers:
    """The numbers 1, 2, 3 and so on: a new one for each act. Changes: counts."""

    def __init__(self) -> None:
        self.last = 0.0

    def next(self) -> float:
        self.last += 1
        return self.last


def several(count: int = 4) -> list[cg.Var]:
    return [cg.Var((20,), "float64", f"v{i}").assign(np.full(20, float(i))) for i in range(count)]


# -- scenarios --------------------------------------------------------------------------------------------------------


def assigned_together(folder: Path) -> Scenario:
    cells = several()
    new = {x: np.full(20, 10.0 + i) for i, x in enumerate(cells)}
    return Scenario(lambda: assign_all(new), new, [cg.stack(cells), cells[1] * 2])


def assigned_without_copies(folder: Path) -> Scenario:
    cells = several()
    new = {x: np.full(20, 10.0 + i) for i, x in enumerate(cells)}
    return Scenario(lambda: assign_all(new, copy=False), new, [cg.stack(cells)])


def state_from_a_file(folder: Path) -> Scenario:
    cells = several()
    step = cg.compile([], updates={x: x + 1 for x in cells})
    step()
    step.save_state(folder / "state")
    new: dict[cg.Var, Any] = {x: x.value for x in cells}
    step()
    return Scenario(lambda: step.load_state(folder / "state"), new, [cg.stack(cells)])


def weights_from_a_file(folder: Path) -> Scenario:
    model, other = (nn.initialise(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), seed) for seed in (1, 2))
    nn.save_weights(folder / "weights", other)
    new: dict[cg.Var, Any] = {x: y.value for x, y in zip(model.variables().values(), other.variables().values())}
    return Scenario(lambda: nn.load_weights(folder / "weights", model), new, [cg.max(x) for x in new])


def first_values(folder: Path) -> Scenario:
    known = nn.initialise(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), 1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    new: dict[cg.Var, Any] = {x: y.value for x, y in zip(model.variables().values(), known.variables().values())}
    return Scenario(lambda: nn.initialise(model, 1), new, [cg.max(x) for x in known.variables().values()])


def resumed_training(folder: Path) -> Scenario:
    model = nn.initialise(nn.Linear(3, 2), 1)
    rng = np.random.default_rng(0)
    samples = rng.random((8, 3), np.float32), rng.integers(0, 2, 8)
    loader, point = nn.Loader(samples, batch=4), Checkpoint(folder / "point", steps=1)
    step = training_step(model, cross_entropy, nn.optim.Adam(), loader.at(0))
    cells = [*model.variables().values(), *step.state.values()]
    settings = TrainSettings(StepSettings(cross_entropy), epochs=1.0, checkpoint=point)
    run = TrainingRun(model, step, None, loader, settings)
    run.run_step()
    new: dict[cg.Var, Any] = {x: x.value for x in cells}
    step(*loader.at(1))
    return Scenario(run.resume, new, [cg.max(x) for x in cells])


def state_of_another_member(folder: Path) -> Scenario:
    member_type = pytest.importorskip("nn.parallel.worker").TrainingWorker
    cells, step = several(), cg.Var((), "int64", "step").assign(3)
    member = member_type(b"")
    member.state = {**{x.name: x for x in cells}, "step": step}
    new = {x: x.value + 5 for x in cells} | {step: np.array(8)}
    return Scenario(lambda: member.set_state({x.name: y for x, y in new.items()}), new, [cg.stack(cells), step + 1])


def a_generator_that_begins(folder: Path) -> Scenario:
    generator = nn.Generator(gpt(1, 11, 8, 4, 1, 1))
    generator([[1, 2, 3]], 2)
    begin = generator.cache.start, generator.key
    key = cg.random_key(generator.seed)
    new = {begin[0]: np.zeros(1, np.int64), begin[1]: key.value if isinstance(key, cg.Var) else key}
    return Scenario(lambda: generator([[1, 2, 3]], 0), new, [x + 1 for x in begin])


def state_of_a_model(folder: Path) -> Scenario:
    cells = [cg.Var((3,), name=f"past{i}") for i in range(3)]
    outputs = [x + 1 for x in cells]
    names = tuple(f"present{i}" for i in range(3))
    model = Model(tuple(cells), tuple(outputs), names)
    new = {x: np.zeros(3, np.float32) for x in cells}
    return Scenario(lambda: model.with_state(dict(zip((x.name for x in cells), names))), new, [var(3, 1.0) * 1])


SCENARIOS = [
    assigned_together,
    assigned_without_copies,
    state_from_a_file,
    weights_from_a_file,
    first_values,
    resumed_training,
    state_of_another_member,
    a_generator_that_begins,
    state_of_a_model,
]
every_scenario = pytest.mark.parametrize("make", SCENARIOS, ids=lambda make: make.__name__)


@every_scenario
def test_an_exception_at_a_line_leaves_all_cells_old_or_all_new(make, tmp_path):
    check_lines(lambda: make(tmp_path), SAMPLED)


@pytest.mark.slow
@every_scenario
def test_an_exception_at_any_line_leaves_all_cells_old_or_all_new(make, tmp_path):
    check_lines(lambda: make(tmp_path), 1)


@every_scenario
def test_an_allocation_that_fails_leaves_all_cells_old_or_all_new(make, tmp_path, monkeypatch):
    counted_one = make(tmp_path)
    counted_one.outcomes()
    with no_memory(monkeypatch, 0) as counted:
        counted_one.act()
    for at in range(1, len(counted) + 1):
        scenario = make(tmp_path)
        outcomes = scenario.outcomes()
        with no_memory(monkeypatch, at), pytest.raises((MemoryError, cg.CgraphError)):
            scenario.act()
        scenario.check(outcomes)


def test_an_array_that_does_not_fit_leaves_all_cells_as_they_were():
    cells = several()
    with pytest.raises(cg.InputError, match="v3"):
        assign_all({**{x: np.zeros(20) for x in cells[:3]}, cells[3]: np.zeros(21)})
    assert [x.value[0] for x in cells] == [0, 1, 2, 3]


# -- another thread at any line ---------------------------------------------------------------------------------------


class Beside(Lines):
    """Lets another thread do something at one line of a call, to its end. Changes: counts lines.

    Fields
        other: what it does
    """

    def __init__(self, at: int, other: Callable[[], Any]) -> None:
        super().__init__(0)
        self.line, self.other = at, other

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        super()._line(frame, event, arg)
        if event == "line" and len(self.seen) == self.line:
            in_time(lambda: [self.other()])
        return self._line


def test_a_run_reads_all_cells_before_an_assignment_of_several_or_all_behind_it():
    cells, numbers = several(5), Numbers()

    def assign() -> None:
        number = numbers.next()
        assign_all({x: np.full(20, number) for x in cells})

    assign()
    read = cg.compile([x + 1 for x in cells])
    for at in range(1, len(events(read)) + 1):
        found: list[Any] = []
        Beside(at, assign).during(lambda to=found: to.extend(read()))
        assert len({x[0] for x in found}) == 1, f"a mixture at event {at}"


def test_a_saved_state_is_that_before_an_assignment_of_several_or_that_behind_it(tmp_path):
    cells, numbers = several(5), Numbers()

    def assign() -> None:
        number = numbers.next()
        assign_all({x: np.full(20, number) for x in cells})

    assign()
    step = cg.compile([], updates={x: x + 1 for x in cells})
    for at in range(1, len(events(lambda: step.save_state(tmp_path / "state"))) + 1, 3):
        Beside(at, assign).during(lambda: step.save_state(tmp_path / "state"))
        found = cg.formats.safetensors.read_safetensors(tmp_path / "state")
        assert len({x[0] for x in found.values()}) == 1, f"a mixture at event {at}"


def test_a_run_never_sees_half_of_a_state_that_is_loaded(tmp_path):
    cells = several(5)
    step, read = cg.compile([], updates={x: x * 0 + 7.0 for x in cells}), cg.compile([x + 0.0 for x in cells])
    assign_all({x: np.zeros(20) for x in cells})
    step.save_state(tmp_path / "state")
    for at in range(1, len(events(lambda: step.load_state(tmp_path / "state"))) + 1):
        step()
        found: list[Any] = []
        Beside(at, lambda to=found: to.extend(read())).during(lambda: step.load_state(tmp_path / "state"))
        if not found:  # later calls run fewer lines than the first one
            break
        assert len({x[0] for x in found}) == 1, f"a mixture at event {at}"
    assert at > 100


def test_a_state_is_loaded_between_two_runs(tmp_path):
    begun, go = threading.Event(), threading.Event()

    def wait(x: np.ndarray) -> np.ndarray:
        begun.set()
        assert go.wait(PATIENCE)
        return x

    cells = several(2)
    step = cg.compile([], updates={cells[0]: cg.delay(wait, cells[0]) + 1, cells[1]: cells[1] + 1})
    step.save_state(tmp_path / "state")
    running = threading.Thread(target=step)
    running.start()
    assert begun.wait(PATIENCE)
    loading = threading.Thread(target=lambda: step.load_state(tmp_path / "state"))
    loading.start()
    while len(step._turns._line) < 2:  # until it waits for its turn
        loading.join(0.001)
    assert loading.is_alive()
    go.set()
    running.join(PATIENCE)
    loading.join(PATIENCE)
    assert [x.value[0] for x in cells] == [0, 1], "the run is over before the state is loaded"


# -- the rule ---------------------------------------------------------------------------------------------------------


LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def loops_that_assign() -> Iterator[tuple[str, str]]:
    """File and function of each loop in this project that assigns a Var in each round."""
    for folder in FOLDERS:
        for path in sorted(Path(folder).rglob("*.py")):
            text = path.read_text()
            if ".assign(" not in text and ".cell.value = " not in text:
                continue
            for function in (x for x in ast.walk(ast.parse(text)) if isinstance(x, ast.FunctionDef)):
                if any(isinstance(x, LOOPS) and assigns(x) for x in ast.walk(function)):
                    yield path.relative_to(folder).as_posix(), function.name


def assigns(loop: ast.AST) -> bool:
    """Whether a Var is assigned below a node."""
    calls = (x.func for x in ast.walk(loop) if isinstance(x, ast.Call))
    stored = (x for x in ast.walk(loop) if isinstance(x, ast.Attribute) and isinstance(x.ctx, ast.Store))
    if any(isinstance(f, ast.Attribute) and f.attr == "assign" for f in calls):
        return True
    return any(x.attr == "value" and isinstance(x.value, ast.Attribute) and x.value.attr == "cell" for x in stored)


def test_no_loop_assigns_one_var_after_another():
    assert set(loops_that_assign()) - HELD_BY_NOBODY_ELSE - ONE_PER_ROUND == set()


@pytest.mark.parametrize("shared", [False, True])
def test_what_is_fetched_from_a_device_belongs_to_the_cell_alone(shared):
    """Whoever shares the older array sees nothing of later runs, and these write the new one in place."""
    old, new = np.zeros(3), np.ones(3)
    cell = CellValue(old, shared)
    cell.newer = SimpleNamespace(fetched=lambda: new)
    assert cell.is_there and cell.array is new and not cell.shared
    assert not old.any()
