"""A worker's part in a training, with messages in a list in place of connections: what it refuses, what it leaves."""

import asyncio
import sys
import threading
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

import cgraph as cg
import nn
from cgraph.dist.limits import Limits
from cgraph.dist.sockets import LostError
from cgraph.errors import MemberError
from nn.parallel import running_shard, sharded_step
from nn.parallel import worker as member_module
from nn.parallel.messages import Job, StepOrder
from nn.parallel.sharded_step import KEY, halves, key_of
from nn.parallel.train import ParallelRun
from nn.parallel.worker import NAME, TrainingWorker, digest, secrets
from nn.settings import StepSettings, TrainSettings
from tests.dist.clusters import alone, loader, network, optimiser
from tests.support.tolerance import assert_near

SHARDS, LIMITS = 4, Limits(step=0.05)


class Door:
    """Where nobody knocks. Changes: which rounds it has forgotten."""

    def __init__(self, host, secrets, limits):
        self.address, self.forgotten, self.closed = (host, 1), [], False

    def forget(self, before):
        self.forgotten.append(before)

    def close(self):
        self.closed = True


class Mesh:
    """Connections that are one list of messages. Changes: it is closed, or given up."""

    post: dict = {}  # noqa: RUF012 emptied by each test

    def __init__(self, door, round, me, addresses, peers, limits):
        self.round, self.me, self.peers, self.closed, self.given_up = round, me, peers, False, False

    def exchange(self, step, sent, wanted):
        for to, tag, x in sent:
            assert to in self.peers
            self.post[self.me, to, tag, step] = x.copy()
        for i, tag, x in wanted:
            assert i in self.peers
            if (i, self.me, tag, step) not in self.post:
                raise LostError(f"member {i} does not answer", i)
            x[...] = self.post[i, self.me, tag, step]

    def close(self):
        self.closed = True

    def give_up(self):
        self.given_up = True


def settings() -> StepSettings:
    return StepSettings(nn.losses.cross_entropy, optimiser(), options={"engine": "reference"})


class Source:
    """Both Functions, as each member has them of its own."""

    def pair(self, threads):
        sample = loader().shard_at(0, 0, SHARDS)
        functions = halves(network(), settings(), sample, SHARDS)
        return functions.gradient, functions.update


@pytest.fixture
def make(monkeypatch):
    """A function that makes a member with its own Functions."""
    Mesh.post.clear()
    monkeypatch.setattr(member_module, "Door", Door)
    monkeypatch.setattr(member_module, "Mesh", Mesh)

    def made(step=0):
        member = TrainingWorker(b"token")
        member.setup(SimpleNamespace(address="tcp://here:1", state=SimpleNamespace(nthreads=1)))
        member.begin(Job(b"token", Source(), step, loader(), 0, SHARDS, LIMITS))
        return member

    return made


def order_of(round=1, me=0, deal=(SHARDS,), step=0, last=2, source=0, behind=(), reports_state=True, rate=None):
    doors = [("here", i) for i in range(len(deal))]
    return StepOrder(round, me, doors, deal, step, last, source, behind, reports_state, rate)


def state_of(member):
    return {name: np.array(x.value) for name, x in member.state.items()}


def test_a_member_alone_makes_the_steps_of_one_machine(make):
    member = make()
    report = member.carry_out(order_of(last=3))
    model = network()
    losses = alone(model, loader(), 3, SHARDS, engine="reference")
    assert [float(x[0]) for x in report.results] == losses
    assert (report.step, report.lost, report.missing) == (3, "", -1) and report.seconds > 0
    assert report.digest == digest(member.update) != digest(make().update)
    for name, x in state_of(member).items():
        np.testing.assert_array_equal(report.state[name], x)
    assert not member.carry_out(order_of(step=3, last=4, reports_state=False)).state


def test_the_reported_state_is_a_copy(make):
    member = make()
    state = member.carry_out(order_of(last=1)).state
    before = {name: x.copy() for name, x in state.items()}
    member.carry_out(order_of(step=1, last=2))
    for name, x in state.items():
        np.testing.assert_array_equal(x, before[name])


def test_an_order_in_two_parts_is_one(make):
    one, two = make(), make()
    whole = one.carry_out(order_of(last=4))
    first, second = two.carry_out(order_of(last=1)), two.carry_out(order_of(step=1, last=4))
    assert whole.digest == second.digest != first.digest
    np.testing.assert_array_equal(
        np.array([x[0] for x in whole.results]), [x[0] for x in first.results + second.results]
    )


def test_an_order_replaces_the_rate_before_its_first_step(make, monkeypatch):
    plateau = nn.Optimiser(nn.optim.GradientDescent(), nn.optim.Plateau(0.5))
    monkeypatch.setattr(sys.modules[__name__], "optimiser", lambda: plateau)
    one, two = make(), make()
    replaced = one.carry_out(order_of(last=2, rate={"rate": np.float32(0.125)}))
    two.state["rate"].assign(np.float32(0.125))
    assert replaced.digest == two.carry_out(order_of(last=2)).digest != make().carry_out(order_of(last=2)).digest
    assert [float(x[1]) for x in replaced.results] == [0.125, 0.125]


@pytest.mark.parametrize("step", [-1, 1, 5])
def test_a_member_of_another_step_refuses(make, step):
    member = make()
    with pytest.raises(MemberError, match=f"is at step 0 instead of {step}"):
        member.carry_out(order_of(step=step, last=step + 1))
    assert member.step == 0 and member.mesh is None


def test_who_is_behind_takes_the_whole_state_of_the_source(make):
    source, behind = make(), make(step=-1)
    source.carry_out(order_of(last=2))
    for x in behind.state.values():
        if x.name != "step":
            x.assign(np.full(x.spec.shape, 7, x.spec.dtype))
    order = {"round": 2, "deal": (2, 2), "step": 2, "last": 2, "behind": (1,)}
    told = source.carry_out(order_of(me=0, **order))
    taken = behind.carry_out(order_of(me=1, **order))
    assert told.digest == taken.digest and behind.step == 2
    for name, x in state_of(source).items():
        np.testing.assert_array_equal(state_of(behind)[name], x, err_msg=name)
    assert 1 in source.mesh.peers and 0 in behind.mesh.peers


def test_three_members_meet_whom_they_exchange_something_with(make):
    """Members 0 and 3 of four have no sum in common, and yet one sends the other its state."""
    for me, peers in ((0, {1, 2, 3}), (1, {0, 3}), (3, {0, 1, 2})):
        member = make()
        member.connect(order_of(me=me, deal=(1, 1, 1, 1), source=0, behind=(3,)))
        assert {*member.mesh.peers} == peers


def test_a_state_that_came_in_half_is_not_taken_at_all(make):
    """Whatever is missing of it: the member has the state that it had, never weights of two steps."""
    member, other = make(), make()
    other.carry_out(order_of(last=2))
    arrays, before = state_of(other), digest(member.update)
    for name in arrays:
        with pytest.raises(KeyError):
            member.set_state({key: x for key, x in arrays.items() if key != name})
        assert member.step == 0 and digest(member.update) == before
    member.set_state(arrays)
    assert member.step == 2 and digest(member.update) == digest(other.update)


@pytest.mark.parametrize("kind", ["lost", "error", "interrupt"])
def test_whatever_ends_a_round_closes_its_connections_and_leaves_a_whole_state(make, monkeypatch, kind):
    member = make()
    error = {"lost": LostError("gone", 1), "error": ZeroDivisionError("mine"), "interrupt": KeyboardInterrupt()}[kind]
    mesh = member.connect(order_of())

    def summed(mesh, step, deal, parts):
        if step == 2:
            raise error
        ((_, total),) = parts
        return total

    monkeypatch.setattr(member_module, "sum_over_members", summed)
    if kind == "lost":
        report = member.carry_out(order_of(last=5))
        assert (report.step, len(report.results), report.lost, report.missing) == (2, 2, "gone", 1)
        assert report.digest == b"" and not report.state
    else:
        with pytest.raises(type(error)):
            member.carry_out(order_of(last=5))
    assert mesh.closed and member.mesh is None and member.step == 2
    other = make()
    other.carry_out(order_of(last=2))
    assert digest(member.update) == digest(other.update)


def test_a_lost_round_without_a_name_misses_nobody(make, monkeypatch):
    member = make()
    monkeypatch.setattr(member_module, "sum_over_members", lambda *_: (_ for _ in ()).throw(LostError("given up")))
    assert member.carry_out(order_of()).missing == -1


def test_connections_are_those_of_the_round_and_older_ones_are_forgotten(make):
    member = make()
    first = member.connect(order_of(round=3))
    assert member.connect(order_of(round=3)) is first and member.door.forgotten == [3]
    second = member.connect(order_of(round=4))
    assert second is not first and first.closed and not second.closed and member.door.forgotten == [3, 4]


def test_a_training_that_is_over_opens_no_connection(make):
    member = make()
    mesh = member.connect(order_of())
    member.teardown(None)
    assert member.door.closed and mesh.given_up
    for number in (1, 2):
        report = member.carry_out(order_of(round=number))
        assert "over" in report.lost and member.step == 0 and member.mesh is None


def test_what_makes_ready_twice_is_ready_as_it_was(make):
    member = make()
    member.carry_out(order_of(last=2))
    update, door = member.update, member.door
    ready = member.begin(Job(b"token", Source(), 0, loader(), 0, SHARDS, LIMITS))
    assert ready.step == 2 and member.update is update and member.door is door


@pytest.mark.parametrize("step", [-1, 0, 7])
def test_the_state_that_comes_with_the_functions_has_the_jobs_step(make, step):
    assert make(step).begin(None).step == step


def test_one_task_at_a_time_and_none_waits_without_end(make):
    member, entered, free = make(), threading.Event(), threading.Event()

    def hold():
        with member.exclusive(1.0):
            entered.set()
            free.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(30)
    with pytest.raises(MemberError, match=r"has been at a step for 0\.05 s"), member.exclusive(0.05):
        pass
    free.set()
    thread.join()
    with pytest.raises(ZeroDivisionError), member.exclusive(1.0):
        raise ZeroDivisionError
    with member.exclusive(1.0):  # it is free again after an error
        pass


class DaskWorker(SimpleNamespace):
    """As much of dask's worker as tasks use. Changes: its plugins."""

    address, state = "tcp://here:1", SimpleNamespace(nthreads=1)

    async def plugin_add(self, plugin, name):
        if name in self.plugins:
            await self.plugin_remove(name)
        self.plugins[name] = plugin
        plugin.setup(self)

    async def plugin_remove(self, name):
        self.plugins.pop(name).teardown(self)


@pytest.fixture
def dask_worker(monkeypatch):
    worker = DaskWorker(plugins={}, loop=None)
    monkeypatch.setattr(member_module, "get_worker", lambda: worker)
    monkeypatch.setattr(member_module, "sync", lambda loop, function, **options: asyncio.run(function(**options)))
    return worker


def job_of(token):
    return Job(token, Source(), 0, loader(), 0, SHARDS, LIMITS)


def test_a_later_training_takes_a_worker_and_the_earlier_one_does_not_take_it_back(make, dask_worker):
    for token in (b"one", b"two"):
        assert member_module.prepare(job_of(token)).step == 0
        assert dask_worker.plugins[NAME].token == token
    with pytest.raises(MemberError, match="another training"):
        member_module.prepare(job_of(b"one"))
    second = dask_worker.plugins[NAME]
    asyncio.run(member_module.end_job(b"one", dask_worker))  # late, as from a client whose link was down
    assert dask_worker.plugins == {NAME: second} and not second.closed
    asyncio.run(member_module.end_job(b"two", dask_worker))
    assert not dask_worker.plugins and second.closed and second.door.closed
    asyncio.run(member_module.end_job(b"two", dask_worker))
    member_module.prepare(job_of(b"one"))  # nobody else has it


@pytest.mark.parametrize("task", ["prepare", "take_state", "carry_out"])
def test_tasks_of_another_training_are_refused_and_all_take_turns(make, dask_worker, task):
    member = make()
    dask_worker.plugins[NAME] = member
    member.former = frozenset({b"other"})
    arguments = {"take_state": state_of(member), "carry_out": order_of(last=1)}

    def run(token):
        call = getattr(member_module, task)
        return call(job_of(token)) if task == "prepare" else call(token, arguments[task])

    with pytest.raises(MemberError, match="another training"):
        run(b"other")
    run(b"token")
    with member.lock, pytest.raises(MemberError, match="has been at a step"):
        run(b"token")
    dask_worker.plugins.clear()
    if task != "prepare":
        with pytest.raises(MemberError, match="this one is over"):
            run(b"token")


def test_the_shards_of_each_member_follow_those_of_the_members_before_it(make, monkeypatch):
    seen = []
    monkeypatch.setattr(member_module, "sum_over_members", lambda mesh, step, deal, parts: seen.append(parts))
    for me, mine in enumerate(([0], [1, 2], [3])):
        member = make()
        known = member.arrays
        asked = []
        member.arrays = lambda shard, known=known, asked=asked: (asked.append(shard), known(shard))[1]
        member.update, member.busy = lambda total: [], 0.0
        member.run_step(None, order_of(me=me, deal=(1, 2, 1)))
        assert asked == mine
    assert [[part for part, _ in parts] for parts in seen] == [[(0, 1)], [(1, 1), (2, 1)], [(3, 1)]]


def test_pieces_are_those_of_the_forward_pass_then_gradients_from_the_last_to_the_first(monkeypatch):
    data = loader()
    one = halves(network(), settings(), data.shard_at(0, 0, 4), 4)
    monkeypatch.setattr(sharded_step, "LEAST_ELEMENTS", 1)
    many = halves(network(), settings(), data.shard_at(0, 0, 4), 4)
    assert len(one.gradient.outputs) == 1 and [x.spec.size for x in many.gradient.outputs] == [33, 51, 32, 128]
    arrays = [*data.shard_at(0, 0, 4), key_of(0, 0, 0)]
    np.testing.assert_array_equal(np.concatenate(many.gradient(*arrays)), one.gradient(*arrays)[0])


def test_workers_sum_pieces_in_their_order_with_the_bits_of_one_piece(make, monkeypatch):
    whole = state_after(make(), monkeypatch)
    monkeypatch.setattr(sharded_step, "LEAST_ELEMENTS", 1)
    member = make()
    for name, value in state_after(member, monkeypatch).items():
        np.testing.assert_array_equal(value, whole[name])
    assert len(member.gradient.outputs) > 1


def state_after(member, monkeypatch):
    """The state after two steps of a member of two, with the gradients of its own shards in place of all."""
    sums = []

    def keep(mesh, step, deal, parts):
        sums.append(len(parts[0][1]))
        return parts[0][1]

    monkeypatch.setattr(member_module, "sum_over_members", keep)
    for _ in range(2):
        member.busy = 0.0
        member.run_step(None, order_of(deal=(2, 2)))
    assert sums == [x.spec.size for x in member.gradient.outputs] * 2
    return state_of(member)


def test_seconds_are_those_of_one_shard(make, monkeypatch):
    clock = iter(range(1000))
    for module in (member_module, running_shard):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    assert make().carry_out(order_of(last=3)).seconds == 2 / SHARDS  # a second for the last shard, one for the others
    assert make().carry_out(order_of(last=0)).seconds == 0


def test_shards_draw_by_seed_step_and_shard_and_nothing_else():
    keys = {key_of(*given).tobytes() for given in np.ndindex(3, 3, 3)}
    assert len(keys) == 27
    np.testing.assert_array_equal(key_of(1, 2, 3), key_of(1, 2, 3))


def test_a_shard_of_a_model_that_draws_has_the_key_of_its_step(make):
    member = make()
    member.set_step(5)
    *arrays, key = member.arrays(2)
    np.testing.assert_array_equal(key, key_of(0, 5, 2))
    for x, y in zip(arrays, loader().shard_at(5, 2, SHARDS)):
        np.testing.assert_array_equal(x, y)
    assert member.gradient.inputs[-1].name == KEY


# -- two halves of a step ---------------------------------------------------------------------------------------------


def plain(parts=()):
    return nn.initialise(nn.Sequential(nn.Input((8,)), nn.Linear(8, 6), *parts, nn.Linear(6, 3)), 1)


def parted(scores, wanted):
    return {"entropy": nn.losses.cross_entropy(scores, wanted), "size": cg.mean(cg.square(scores))}


@pytest.mark.parametrize("least", [1, 12, 1 << 16])
@pytest.mark.parametrize("shards", [1, 2, 4, 8])
def test_what_is_added_up_over_shards_is_a_mean_or_a_sum_as_it_should_be(shards, least, monkeypatch):
    """Loss, its parts, gradients and running statistics are means over the shards, metrics are sums."""
    monkeypatch.setattr(sharded_step, "LEAST_ELEMENTS", least)
    model, data = plain((nn.BatchNorm(6), nn.Activation("tanh"))), loader()
    change = nn.Optimiser(nn.optim.GradientDescent(), nn.optim.Const(1.0))
    metrics = (nn.metrics.accuracy(), nn.metrics.confusion(3))
    options = {"metrics": metrics, "engine": "reference"}
    step_settings = StepSettings(parted, change, metrics=metrics, options={"engine": "reference"})
    both = halves(model, step_settings, data.shard_at(0, 0, shards), shards)
    before = {path: x.value for path, x in model.variables().items()}
    each = []
    for shard in range(shards):
        other = plain((nn.BatchNorm(6), nn.Activation("tanh")))
        step = nn.training_step(other, parted, change, data.shard_at(0, shard, shards), **options)
        loss, _, *parts = step(*data.shard_at(0, shard, shards))
        each.append((loss, parts, {path: x.value for path, x in other.variables().items()}))
    pieces = zip(*(both.gradient(*data.shard_at(0, shard, shards)) for shard in range(shards)))
    loss, rate, entropy, size, accuracy, confusion = both.update(*map(sum, pieces))
    assert both.parts == ("entropy", "size") and rate == 1
    assert_near(loss, np.mean([x[0] for x in each]), "float32 sums")
    assert_near([entropy, size], np.mean([x[1][:2] for x in each], axis=0), "float32 sums")
    np.testing.assert_array_equal(accuracy, np.sum([x[1][2] for x in each], axis=0))
    np.testing.assert_array_equal(confusion, np.sum([x[1][3] for x in each], axis=0))
    assert confusion.sum() == 32 == accuracy[1]
    for path, x in model.variables().items():
        want = np.mean([values[path] for *_, values in each], axis=0)
        assert_near(x.value, want, "float32 weights of shards")
        assert (x.value != before[path]).any()


# -- how far an order goes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [1, 2, 5, 6])
@pytest.mark.parametrize("rule", ["none", "steps", "epochs", "both", "when"])
def test_orders_end_where_there_is_something_to_do_with_the_state(each, rule):
    """At the end of the training or of an epoch, or at a checkpoint that is due, and not before."""
    rules = {"steps": {"steps": 4}, "epochs": {"epochs": 0.5}, "both": {"steps": 3, "epochs": 2.0}}
    rules["when"] = {"when": lambda step, loss: False}
    checkpoint = None if rule == "none" else nn.Checkpoint("at.json", **rules[rule])
    for total in range(1, 14):
        for count in range(total):
            run = ParallelRun.__new__(ParallelRun)
            run.losses, run.total = [0.0] * count, total
            run.settings = TrainSettings(settings(), checkpoint=checkpoint)
            run.data = SimpleNamespace(steps_per_epoch=each)
            reach = next(
                k
                for k in range(1, 99)
                if rule == "when" or count + k == total or (count + k) % each == 0
                or (checkpoint is not None and checkpoint.due(count + k, each, 0.0))
            )  # fmt: skip
            assert run.steps_until_due() == reach, (total, count)


def test_the_client_has_the_state_behind_the_last_result_of_an_order():
    """And asks for another order only when all results are told."""
    model, data = plain(), loader()
    both = halves(model, settings(), data.shard_at(0, 0, 1), 1)
    asked = []

    def steps(first, most, rate):
        assert rate == {}
        asked.append((first, most))
        state = run.current_state()
        state["step"] = np.int64(first + 2)
        return [[np.float32(first + i), np.float32(0.5), np.ones(3)] for i in range(2)], state

    run = ParallelRun.__new__(ParallelRun)
    run.functions, run.coordinator, run.losses, run.total = both, SimpleNamespace(steps=steps), [], 9
    run.data, run.settings, run.pending = data, TrainSettings(settings()), deque()
    for number in range(1, 5):
        loss, rate, more = run.step_outputs(number)
        assert (loss, rate, more.tolist()) == (number - 1, 0.5, [1, 1, 1]) and type(loss) is float
        run.losses.append(loss)
        assert int(run.current_state()["step"]) == (number + 1) // 2 * 2
    assert [first for first, _ in asked] == [0, 2]


def test_a_cluster_with_tls_has_a_context_for_listening_and_one_for_connecting():
    security = SimpleNamespace(
        get_listen_args=lambda role: {"ssl_context": ("listen", role)},
        get_connection_args=lambda role: {"ssl_context": ("connect", role)},
    )
    found = secrets(SimpleNamespace(address="tls://here:1", security=security), b"token")
    assert (found.token, found.server, found.client) == (b"token", ("listen", "worker"), ("connect", "worker"))
    for address in ("tcp://here:1", "inproc://here/1"):
        plain = secrets(SimpleNamespace(address=address, security=security), b"token")
        assert (plain.token, plain.server, plain.client) == (b"token", None, None)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), MemberError("gone")], ids=repr)
def test_the_job_of_a_training_is_ended_however_the_training_ends(error, monkeypatch):
    made = []

    class Crew:
        def __init__(self, *arguments):
            self.arguments, self.closed = arguments, 0
            made.append(self)

        def close(self):
            self.closed += 1

    def run_remaining():
        assert not run.coordinator.closed and not run.pending
        if error is not None:
            raise error
        return "history"

    monkeypatch.setattr("nn.parallel.coordinator.Coordinator", Crew)
    monkeypatch.setattr("nn.parallel.train.facts", lambda function: ("facts of", function))
    run, functions = ParallelRun.__new__(ParallelRun), SimpleNamespace(update="update")
    run.run_remaining = run_remaining
    if error is None:
        assert run.run_on("client", "job", functions) == "history"
    else:
        with pytest.raises(type(error)):
            run.run_on("client", "job", functions)
    (crew,) = made
    assert crew.arguments == ("client", "job", ("facts of", "update"), run.current_state) and crew.closed == 1


@pytest.mark.parametrize("rate", [0.25, nn.optim.Plateau(0.25)], ids=["constant", "of the state"])
def test_the_client_sends_the_rate_that_it_changes(rate):
    rule = StepSettings(nn.losses.cross_entropy, nn.Optimiser(rate=rate))
    run = ParallelRun.__new__(ParallelRun)
    run.settings = TrainSettings(rule)
    run.step = SimpleNamespace(state=rule.optimiser.state({}))
    found = run.current_rate()
    if isinstance(rate, float):
        assert found == {}
        return
    assert list(found) == ["rate"] and found["rate"] == np.float32(0.25)
    run.step.state["rate"].assign(np.float32(0.125))
    assert run.current_rate()["rate"] == np.float32(0.125)
