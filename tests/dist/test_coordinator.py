"""The client's side of a training against members that die, hang, come late, are stale or differ: without processes."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

from distributed.client import FutureCancelledError, FuturesCancelledError

from cgraph.dist.limits import Limits
from cgraph.dist.sockets import door_host
from cgraph.errors import InputError, MemberError
from nn.parallel import coordinator as crew_module
from nn.parallel.coordinator import VAIN, answer
from nn.parallel.messages import StepReport
from nn.parallel.unreachable import ROUNDS
from tests.dist.crews import LIMITS, Cluster, Fake, Future, dies, fails, hangs, state_at, use, vanishes, weight
from tests.support.tolerance import near

TOTAL = 12


def trained(cluster, crew, total=TOTAL, most=5):
    """The whole training as the client runs it: what each step gave."""
    found = []
    while len(found) < total:
        results, state = crew.steps(len(found), min(most, total - len(found)))
        assert 1 <= len(results) <= min(most, total - len(found))
        found += [int(x) for (x,) in results]
        cluster.client_step = len(found)
        assert {name: int(x) for name, x in state.items()} == {"step": len(found), "weight": weight(len(found))}
    return found


WANTED = [weight(i) for i in range(TOTAL)]


def told(cluster, function):
    return [who for what, who in cluster.told if what == function]


# -- any fate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(150))
def test_results_and_state_do_not_depend_on_who_dies_hangs_or_comes(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    cluster = Cluster("abcd"[: rng.integers(1, 5)])
    newcomers = iter("efghijklmnopqrstuvwxyz")

    def come():
        name = next(newcomers)
        cluster.members[name] = Fake(name, 0)

    def fate_of(name):
        kind, steps = rng.integers(5), int(rng.integers(-1, 4))
        if kind == 4:
            return lambda *_: None
        cluster.at(float(rng.uniform(0, 8)), come)  # so that nobody waits in vain
        return (dies(steps), vanishes(), *[hangs(steps, float(rng.uniform(4, 30)))] * 2)[kind]

    for name in "abcdef":
        cluster.fates[name] = [fate_of(name) for _ in range(rng.integers(3))]
    for member in cluster.members.values():
        member.seconds = float(rng.uniform(0, 3))
    crew = use(monkeypatch, cluster)
    crew.pace, cluster.late = rng.uniform(0, 1), int(rng.integers(3))
    assert trained(cluster, crew) == WANTED


def test_results_of_a_state_that_nobody_has_any_more_are_made_again(monkeypatch):
    """a and b make two steps when c is lost; then a dies before b, who is behind, has the state."""
    cluster = Cluster("ab")
    crew = use(monkeypatch, cluster)
    crew.pace = 0.5
    cluster.fates = {"b": [dies(2)]}

    def lost(cluster, member, at):
        cluster.at(0.5, lambda: cluster.members.setdefault("z", Fake("z", 0)))
        dies(-1)(cluster, member, at)

    cluster.fates["a"] = [lambda *_: None, lost]
    assert trained(cluster, crew) == WANTED
    assert told(cluster, "take_state") == ["z"]


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_who_dies_is_left_out_and_its_steps_are_not_lost(monkeypatch, steps, count):
    cluster = Cluster("abcd")
    crew = use(monkeypatch, cluster)
    crew.pace = 0.5
    for name in "abcd"[:count]:
        cluster.fates[name] = [dies(steps)]
    assert trained(cluster, crew) == WANTED
    assert sorted(crew.ready) == list("abcd"[count:])
    assert told(cluster, "take_state") == []


# -- who is there -----------------------------------------------------------------------------------------------------


def test_the_first_round_waits_for_all_that_make_ready_and_later_ones_for_nobody(monkeypatch):
    cluster = Cluster("ab")
    cluster.prepared["b"] = "never"
    cluster.at(5.0, lambda: cluster.prepared.clear())
    crew = use(monkeypatch, cluster)
    assert crew.participants() == ["a", "b"] and cluster.now >= 5.0
    crew.steps(0, 2)
    cluster.members["c"], cluster.prepared["c"] = Fake("c"), "never"
    now = cluster.now
    assert crew.participants() == ["a", "b"] and cluster.now == now
    cluster.prepared.clear()
    cluster.sleep()
    assert crew.participants() == ["a", "b", "c"]


def test_one_that_is_never_ready_keeps_the_others_for_a_bounded_time(monkeypatch):
    cluster = Cluster("ab")
    cluster.prepared["b"] = "never"
    crew = use(monkeypatch, cluster)
    assert crew.participants() == ["a"]
    assert LIMITS.gather < cluster.now < LIMITS.gather + 1


@pytest.mark.parametrize("names", ["", "a"])
def test_nobody_who_is_ready_in_time_is_an_error(monkeypatch, names):
    cluster = Cluster(names)
    cluster.prepared["a"] = "never"
    with pytest.raises(MemberError, match="no worker has been ready to train for 20 s"):
        use(monkeypatch, cluster).participants()
    assert LIMITS.gather < cluster.now < LIMITS.gather + 1


def test_no_more_members_than_shards_take_part(monkeypatch):
    cluster = Cluster("abcdef", shards=4)
    crew = use(monkeypatch, cluster)
    assert crew.participants() == list("abcd")
    assert trained(cluster, crew) == WANTED
    assert not cluster.members["e"].orders and not cluster.members["f"].orders


@pytest.mark.parametrize("facts", [("1.1", "avx2"), ("1.0", "avx512")])
def test_another_version_or_target_takes_no_part_and_is_named(monkeypatch, facts):
    cluster = Cluster("ab")
    cluster.members["b"].facts = facts
    crew = use(monkeypatch, cluster)
    with pytest.warns(UserWarning, match=f"worker b takes no part: it has cgraph {facts[0]} for {facts[1]}"):
        assert trained(cluster, crew) == WANTED
    assert not cluster.members["b"].orders
    assert told(cluster, "prepare") == ["a", "b"]  # and is not told again


def test_when_nobody_can_train_every_reason_is_told_at_once(monkeypatch):
    cluster = Cluster("ab")
    cluster.members["a"].facts = ("2.0", "avx2")
    cluster.prepared["b"] = InputError("this file is not there")
    crew = use(monkeypatch, cluster)
    with (
        pytest.warns(UserWarning, match="takes no part"),
        pytest.raises(MemberError, match=r"no worker can train; a: it has cgraph 2\.0.*; b: InputError: this file"),
    ):
        crew.participants()
    assert cluster.now < 1


def test_who_cannot_be_ready_for_a_reason_that_is_not_ours_is_told_again(monkeypatch):
    class Foreign(Exception):
        """dask's own."""

    cluster = Cluster("ab")
    cluster.prepared["b"] = Foreign("the worker was restarted")
    crew = use(monkeypatch, cluster)
    for _ in range(3):
        assert crew.participants() == ["a"]
        cluster.sleep()
    cluster.prepared.clear()
    cluster.sleep(), crew.refresh()
    assert crew.participants() == ["a", "b"]
    assert told(cluster, "prepare").count("b") > 2 and not crew.unfit


def test_who_is_gone_is_forgotten_wherever_it_stood(monkeypatch):
    cluster = Cluster("abcd")
    cluster.members["c"].facts = ("2.0", "avx2")
    cluster.prepared["b"] = "never"
    crew = use(monkeypatch, cluster)
    with pytest.warns(UserWarning):
        crew.participants()
    crew.silent["d"], crew.seconds["a"] = Future(), 3.0
    crew.ready.pop("d")
    for name in "abcd":
        cluster.leave(name)
    crew.refresh()
    assert not (crew.ready or crew.preparing or crew.silent or crew.unfit or crew.seconds)


def test_who_comes_back_is_made_ready_again(monkeypatch):
    cluster = Cluster("a")
    crew = use(monkeypatch, cluster)
    crew.participants()
    cluster.leave("a")
    crew.refresh()
    cluster.members["a"] = Fake("a", 7)
    assert crew.participants() == ["a"] and crew.ready["a"].step == 7
    assert told(cluster, "prepare") == ["a", "a"]


@pytest.mark.parametrize(
    ("status", "sent"), [("finished", 1), ("pending", 1), ("lost", 2), ("error", 2), ("cancelled", 2)]
)
def test_the_job_is_sent_again_only_when_all_who_had_it_are_gone(monkeypatch, status, sent):
    cluster = Cluster("a")
    crew = use(monkeypatch, cluster)
    crew.participants()
    cluster.scattered[0].status = status
    cluster.members["b"] = Fake("b")
    crew.refresh()
    assert len(cluster.scattered) == sent


# -- the state --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stale", [-1, 0, 3, 9])
@pytest.mark.parametrize("name", ["0", "z"])
def test_a_member_of_another_step_takes_the_state_of_one_that_has_it(monkeypatch, stale, name):
    cluster = Cluster("bc", step=5)
    cluster.client_step = 5
    crew = use(monkeypatch, cluster)
    crew.steps(5, 1)
    newcomer = cluster.members[name] = Fake(name, max(stale, 0))
    newcomer.step, newcomer.weight = stale, -7
    crew.participants(), cluster.sleep()
    results, state = crew.steps(6, 1)
    assert [int(x) for (x,) in results] == [weight(6)] and int(state["weight"]) == weight(7)
    (order,) = newcomer.orders
    assert list(order.behind) == [order.me] and order.source != order.me
    assert told(cluster, "take_state") == []


def test_when_nobody_has_the_step_the_clients_state_is_sent_to_one(monkeypatch):
    cluster = Cluster("abc", step=-1)
    for member in cluster.members.values():
        member.weight = -7
    cluster.client_step = 4
    crew = use(monkeypatch, cluster)
    results, state = crew.steps(4, 3)
    assert [int(x) for (x,) in results] == [weight(4)] and int(state["step"]) == 5
    assert told(cluster, "take_state") == ["a"]
    order = cluster.members["c"].orders[0]
    assert (list(order.behind), order.source) == ([1, 2], 0)


def test_every_order_has_the_rate_that_the_client_gives(monkeypatch):
    """Also for a worker that joins, whose own state may be older than the last change of the rate."""
    cluster = Cluster("ab")
    crew = use(monkeypatch, cluster)
    crew.steps(0, 1, {"rate": np.float32(0.5)})
    cluster.members["c"] = Fake("c", 1)
    crew.steps(1, 1)
    crew.steps(2, 1, {"rate": np.float32(0.25)})
    rates = [[order.rate for order in cluster.members[name].orders] for name in "abc"]
    assert rates == [[{"rate": 0.5}, None, {"rate": 0.25}]] * 2 + [[{"rate": 0.25}]]


def test_who_does_not_take_the_state_takes_no_part(monkeypatch):
    cluster = Cluster("ab", step=-1)
    cluster.client_step = 0
    crew = use(monkeypatch, cluster)
    crew.participants()
    submit = cluster.submit

    def refused(function, *args, workers, **options):
        future = submit(function, *args, workers=workers, **options)
        if function.__name__ == "take_state" and workers == ["a"]:
            cluster.leave("a")
        return future

    cluster.submit = refused
    assert trained(cluster, crew) == WANTED
    assert told(cluster, "take_state") == ["a", "b"]
    assert "a" not in crew.ready


@pytest.mark.parametrize("members", [2, 3])
@pytest.mark.parametrize("odd", [0, -1])
def test_members_whose_states_differ_end_the_training(monkeypatch, members, odd):
    cluster = Cluster("abc"[:members])
    crew = use(monkeypatch, cluster)
    cluster.members["abc"[:members][odd]].weight += 1
    with pytest.raises(MemberError, match=f"2 states among {members} members after step 1"):
        crew.steps(0, 1)


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), MemberError("another training"), KeyError("name")])
def test_what_a_step_raises_is_raised(monkeypatch, error):
    cluster = Cluster("ab")
    cluster.fates["b"] = [fails(error)]
    with pytest.raises(type(error)):
        use(monkeypatch, cluster).steps(0, 1)


def test_a_training_that_does_not_move_ends_with_the_reason(monkeypatch):
    cluster = Cluster("ab")
    cluster.fates["b"] = [hangs(0, 1.0) for _ in range(3 * VAIN)]
    cluster.fates["a"] = [hangs(0, 1.0) for _ in range(3 * VAIN)]
    with pytest.raises(MemberError, match=f"{VAIN} rounds without a step, the last one because somebody is lost"):
        use(monkeypatch, cluster).steps(0, 1)


def test_a_state_that_nobody_accepts_ends_the_training_with_the_worker(monkeypatch):
    cluster = Cluster("ab", step=-1)
    cluster.client_step, asked = 0, []
    crew = use(monkeypatch, cluster)

    def refuses(worker):
        asked.append(worker)
        assert len(asked) <= VAIN
        return False

    monkeypatch.setattr(crew, "send_state", refuses)
    with pytest.raises(MemberError, match=f"{VAIN} rounds without a step, the last one because a does not accept the"):
        crew.steps(0, 1)
    assert asked == ["a"] * VAIN


def test_one_of_two_workers_that_do_not_reach_one_another_is_left_out_for_some_time(monkeypatch):
    """Both reach the client; after two rounds in vain the others go on, and much later both take part again."""
    cluster = Cluster("abc")
    crew = use(monkeypatch, cluster)

    def misses_first(cluster, member, at):
        if cluster.now < 30.0:
            at.cut.append((0, at.order.me))
            at.future.settle(member.report(at.order, member.step, "no answer", 0))

    cluster.fates["b"] = [misses_first] * 100
    assert [int(x) for _ in range(5) for (x,) in crew.steps(cluster.members["a"].step, 1)[0]] == WANTED[:5]
    assert len(cluster.members["b"].orders) == ROUNDS
    assert cluster.now < 30.0
    cluster.now = 60.0
    crew.steps(5, 5)
    assert cluster.members["b"].step == cluster.members["a"].step > 5
    assert not crew.unreachable.rounds and not crew.unreachable.until


def test_only_rounds_without_a_step_in_a_row_count_as_vain(monkeypatch):
    """As many as twelve are lost, each after one step more: all of it within one order of many steps."""
    names = "abcdefghijklm"
    assert len(names) - 1 > VAIN
    cluster = Cluster(names, shards=16)
    crew = use(monkeypatch, cluster)
    crew.pace = 0.01
    for i, name in enumerate(names[:-1]):
        cluster.fates[name] = [*[lambda *_: None] * i, dies(1)]
    results, state = crew.steps(0, 20)
    assert [int(x) for (x,) in results] == [weight(i) for i in range(20)] and int(state["weight"]) == weight(20)
    assert told(cluster, "take_state") == []


@pytest.mark.parametrize("late", [0, 1, 2])
def test_the_furthest_of_those_who_are_left_is_the_one_that_counts(monkeypatch, late):
    cluster = Cluster("abc")
    cluster.late = late
    crew = use(monkeypatch, cluster)
    crew.pace = 0.5
    cluster.fates["c"] = [dies(2)]
    assert trained(cluster, crew) == WANTED
    assert cluster.members["a"].orders[1].step == (1 if late == 2 else 2)


@pytest.mark.parametrize("name", ["a", "b"])
def test_without_the_report_of_every_member_a_round_is_not_whole(monkeypatch, name):
    cluster = Cluster("ab")
    crew = use(monkeypatch, cluster)
    cluster.fates[name] = [vanishes()]
    assert trained(cluster, crew) == WANTED


# -- orders -----------------------------------------------------------------------------------------------------------


def test_a_round_keeps_its_number_while_nothing_changes_and_has_another_when_anything_does(monkeypatch):
    cluster = Cluster("abc")
    crew = use(monkeypatch, cluster)
    crew.steps(0, 1), crew.steps(1, 1)
    rounds = [x.round for x in cluster.members["a"].orders]
    assert rounds == [1, 1]
    cluster.fates["c"] = [dies(0)]
    crew.steps(2, 1)  # c is lost in round 1; then others go on in a round of their own
    cluster.members["d"] = Fake("d")
    crew.refresh(), cluster.sleep(), crew.refresh()
    crew.steps(3, 1)
    crew.steps(4, 1)
    assert [x.round for x in cluster.members["a"].orders] == [1, 1, 1, 2, 3, 3]


def test_a_round_that_was_given_up_is_not_gone_on_with_by_the_same_members(monkeypatch):
    """Its connections are closed: the same members need another number."""
    cluster = Cluster("ab")
    crew = use(monkeypatch, cluster)
    cluster.fates["b"] = [hangs(0, 0.05)]
    crew.steps(0, 1)
    orders = cluster.members["a"].orders
    assert [x.round for x in orders[:2]] == [1, 2] and len({tuple(x.doors) for x in orders}) <= 2


def test_one_that_was_started_anew_at_its_address_takes_the_state_in_a_round_of_its_own(monkeypatch):
    cluster = Cluster("ab")
    crew = use(monkeypatch, cluster)
    crew.steps(0, 1)
    cluster.members["b"] = other = Fake("b")
    crew.ready.pop("b"), crew.refresh(), cluster.sleep()
    crew.steps(1, 1)
    (order,) = other.orders
    assert (order.round, list(order.behind)) == (2, [1])


def test_another_deal_is_another_round(monkeypatch):
    cluster = Cluster("ab")
    crew = use(monkeypatch, cluster)
    crew.steps(0, 1)
    cluster.members["a"].seconds, cluster.members["b"].seconds = 1.0, 3.0
    crew.steps(1, 1), crew.steps(2, 1)
    first, second, third = cluster.members["b"].orders
    assert first.round == second.round != third.round
    assert (list(first.deal), list(third.deal)) == ([4, 4], [6, 2])


def test_one_member_reports_the_state_and_each_knows_which_it_is(monkeypatch):
    cluster = Cluster("abc")
    use(monkeypatch, cluster).steps(0, 1)
    orders = [cluster.members[name].orders[0] for name in "abc"]
    assert [x.me for x in orders] == [0, 1, 2]
    assert [x.reports_state for x in orders] == [True, False, False]
    assert {(x.round, x.step, x.last, x.source) for x in orders} == {(1, 0, 1, 0)}
    assert sum(orders[0].deal) == 8 and not orders[0].behind


@pytest.mark.parametrize("pace", [0.1, 0.7, 2.9, 3.1, 100.0])
@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_an_order_takes_about_the_time_of_a_round_and_never_more_steps_than_asked_for(monkeypatch, pace, most):
    cluster = Cluster("a")
    crew = use(monkeypatch, cluster)
    crew.pace = pace
    crew.steps(0, most)
    (order,) = cluster.members["a"].orders
    assert order.last - order.step == min(most, max(1, int(LIMITS.round / pace)))


def test_the_first_order_is_one_step_and_measures_the_pace(monkeypatch):
    cluster = Cluster("a")
    crew = use(monkeypatch, cluster)
    results, _ = crew.steps(0, 1000)
    assert len(results) == 1
    assert crew.pace == near(0.1, "float64 through float32")
    results, _ = crew.steps(1, 1000)
    assert (
        crew.pace == near(0.1 / len(results), "float64 through float32") and len(results) > 1
    )  # more steps in the same time


def test_a_broken_round_measures_nothing(monkeypatch):
    cluster = Cluster("ab")
    crew = use(monkeypatch, cluster)
    cluster.fates["b"] = [hangs(0, 9.0)]
    crew.participants()
    crew.run_order(["a", "b"], 0, 1)
    assert crew.pace == 0 and crew.last == ((), ())


def test_seconds_of_a_shard_are_kept_where_a_report_has_none(monkeypatch):
    cluster = Cluster("a")
    cluster.members["a"].seconds = 2.5
    crew = use(monkeypatch, cluster)
    crew.steps(0, 1)
    cluster.members["a"].seconds = 0.0
    crew.steps(1, 1)
    assert crew.seconds == {"a": 2.5} and crew.ready["a"].step == 2


# -- waiting ----------------------------------------------------------------------------------------------------------


def test_who_is_missed_by_the_others_is_not_waited_for(monkeypatch):
    cluster = Cluster("abc")
    crew = use(monkeypatch, cluster)
    cluster.fates["b"] = [hangs(1, 1e6)]
    crew.pace = 0.5
    assert trained(cluster, crew) == WANTED
    assert cluster.now < 3
    assert "b" in crew.silent and "b" not in crew.ready


def test_who_answers_again_is_asked_where_it_is(monkeypatch):
    cluster = Cluster("ab")
    crew = use(monkeypatch, cluster)
    cluster.fates["b"] = [hangs(0, 2.0)]
    crew.steps(0, 1)
    assert "b" in crew.silent
    cluster.sleep(3.0)
    crew.refresh(), cluster.sleep(), crew.refresh(), cluster.sleep(), crew.refresh()
    assert not crew.silent and crew.ready["b"].step == 0 and told(cluster, "prepare") == ["a", "b", "b"]


def test_one_of_whom_nobody_says_anything_is_waited_for_within_a_bound(monkeypatch):
    """It holds the round, and no other member misses it."""
    cluster = Cluster("a")
    crew = use(monkeypatch, cluster)
    crew.participants()
    silent = Future(crew_module.carry_out)
    assert crew.collect({"a": silent}) == {}
    assert LIMITS.step + LIMITS.round <= cluster.now < LIMITS.step + LIMITS.round + 1
    assert crew.silent == {"a": silent} and not crew.ready


@pytest.mark.parametrize("lost", [True, False])
def test_once_a_round_is_lost_the_others_have_a_short_time(monkeypatch, lost):
    cluster = Cluster("ab")
    crew = use(monkeypatch, cluster)
    crew.participants()
    crew.pace = 2.0
    began = cluster.now
    first = Future().settle(StepReport(3, [], 0.0, "lost" if lost else "", -1, b"", {}))
    found = crew.collect({"a": first, "b": Future()})
    grace = LIMITS.silence + LIMITS.answer + 2 * crew.pace
    bound = grace if lost else LIMITS.step + LIMITS.round
    assert list(found) == ["a"] and bound <= cluster.now - began < bound + 1
    assert "a" in crew.ready and "b" not in crew.ready and list(crew.silent) == ["b"]


def test_a_second_loss_gives_the_others_no_more_time(monkeypatch):
    cluster = Cluster("abc")
    crew = use(monkeypatch, cluster)
    crew.participants()
    crew.pace = 2.0
    grace = LIMITS.silence + LIMITS.answer + 2 * crew.pace
    began, later = cluster.now, Future()
    cluster.at(grace / 2, lambda: later.settle(StepReport(3, [], 0.0, "lost", -1, b"", {})))
    first = Future().settle(StepReport(3, [], 0.0, "lost", -1, b"", {}))
    assert set(crew.collect({"a": first, "b": later, "c": Future()})) == {"a", "b"}
    assert grace <= cluster.now - began < grace + 1


def test_whose_task_is_lost_is_ready_no_more_and_not_silent(monkeypatch):
    cluster = Cluster("abc")
    crew = use(monkeypatch, cluster)
    crew.participants()
    alone = Future()
    cluster.leave("c")  # the scheduler has noticed before the future has
    found = crew.collect({"a": Future().settle(1), "b": Future().settle(None, "lost"), "c": alone})
    assert found == {"a": 1} and list(crew.ready) == ["a"] and not crew.silent
    assert alone.status == "cancelled"


class Unreachable(Future):
    """A result whose worker is gone with it."""

    def result(self, timeout=None):
        raise self.value


@pytest.mark.parametrize("error", [TimeoutError(), OSError("no route")])
def test_a_result_that_cannot_be_fetched_is_no_answer(error):
    assert answer(Unreachable().settle(error)) is None


def test_answers_that_are_no_results():
    assert answer(Future().settle(5)) == 5
    assert answer(Future().settle(None, "lost")) is None
    assert answer(Future().settle(None, "cancelled")) is None
    assert answer(Future().settle(RuntimeError("dask's"), "error")) is None
    with pytest.raises(ValueError, match="ours"):
        answer(Future().settle(ValueError("ours"), "error"))


def test_waiting_passes_over_what_dasks_loop_raises_and_nothing_else(monkeypatch):
    monkeypatch.setattr(crew_module, "POLL", 0.01)
    for error in (TimeoutError(), OSError(), RuntimeError(), FuturesCancelledError([])):
        monkeypatch.setattr(crew_module, "wait", raising(error))
        crew_module.wait_for_any([])
    monkeypatch.setattr(crew_module, "wait", raising(ValueError("no future")))
    with pytest.raises(ValueError, match="no future"):
        crew_module.wait_for_any([])


def raising(error):
    def wait(futures, timeout, return_when):
        assert 0 < timeout <= 1 and return_when == "FIRST_COMPLETED"
        raise error

    return wait


# -- the cluster as a whole -------------------------------------------------------------------------------------------


def test_closing_is_quiet_and_waits_for_no_worker_without_end(monkeypatch):
    free, quick = threading.Event(), Limits(gather=0.05, answer=0.02)
    cluster = Cluster("a", limits=quick)
    crew = use(monkeypatch, cluster)
    cluster.run = lambda *_, **__: free.wait()
    crew.close()
    cluster.run = raising_now
    crew.close()
    free.set()


def raising_now(*args, **options):
    raise OSError("closed")


@pytest.mark.parametrize("error", [OSError("no route"), FutureCancelledError("job", "scheduler-connection-lost")])
def test_a_scheduler_that_is_not_reached_for_a_while_is_asked_again(monkeypatch, error):
    cluster, attempts = Cluster("ab"), []
    crew = use(monkeypatch, cluster)
    original = cluster.scatter

    def scatter(job, **options):
        attempts.append(job)
        if len(attempts) < 5:
            raise error
        return original(job, **options)

    monkeypatch.setattr(cluster, "scatter", scatter)
    assert trained(cluster, crew) == WANTED and len(attempts) == 5


def test_the_job_of_this_training_is_ended_and_no_other(monkeypatch):
    cluster = Cluster("a")
    crew = use(monkeypatch, cluster)
    crew.close()
    assert cluster.told == [("end_job", b"token")]


def test_a_client_that_has_lost_its_scheduler_says_so(monkeypatch):
    cluster = Cluster("a")
    crew = use(monkeypatch, cluster)
    cluster.status = "closed"
    with pytest.raises(MemberError, match="lost its scheduler"):
        crew.steps(0, 1)


def test_the_state_that_is_held_is_the_one_that_is_sent(monkeypatch):
    cluster = Cluster("a", step=-1)
    cluster.client_step = 6
    crew = use(monkeypatch, cluster)
    crew.participants()
    assert crew.send_state("a") and crew.ready["a"].step == 6
    assert cluster.members["a"].weight == int(state_at(6)["weight"])
    assert SimpleNamespace(**vars(crew.ready["a"])).door == ("host", 1)


# -- the network ------------------------------------------------------------------------------------------------------


PRIVATE = [
    "tls://10.0.0.2:8000",
    "tcp://127.0.0.1:8000",
    "tcp://localhost:1",
    "tcp://[::1]:8000",
    "inproc://10.0.0.2/7/1",
]
OPEN = [
    "tcp://10.0.0.2:8000",
    "tcp://worker.example:8000",
    "tcp://[fe80::1]:8000",
    "tcp://127.0.0.1.example:1",
    "tcp://",
    "",
]


def test_without_tls_a_worker_on_another_machine_takes_no_part():
    for address in PRIVATE + OPEN:
        cluster = Cluster(trust_network=False)
        cluster.members[address] = Fake(address, 0)
        crew = cluster.crew()
        if address in PRIVATE:
            crew.refresh()
            assert told(cluster, "prepare") == [address]
            continue
        with pytest.warns(UserWarning, match="takes no part: others on the network.*pass trust_network=True"):
            crew.refresh()
        assert told(cluster, "prepare") == [] and crew.unfit.keys() == {address}


def test_a_trusted_network_needs_no_tls():
    cluster = Cluster(trust_network=True)
    cluster.members[OPEN[0]] = Fake(OPEN[0], 0)
    cluster.crew().refresh()
    assert told(cluster, "prepare") == OPEN[:1]


def test_a_door_is_opened_at_the_address_of_its_worker():
    assert door_host("tls://10.0.0.2:8000") == "10.0.0.2"
    assert door_host("inproc://10.0.0.2/7/1") == "127.0.0.1"
