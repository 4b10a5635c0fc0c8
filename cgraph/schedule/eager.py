"""eager: the given order, except that nodes that need no more bytes than they free run as soon as they can.

Idea: in a training graph the gradient of a weight is needed last, but computing it ends the usage of a forward value
and of a gradient. After each node, the nodes that have become ready are examined, with a few of those that they make
ready in turn; if together they free at least as many bytes as they need, they run at once.

Time O(n + edges) times `AHEAD`; no bound on the distance to the optimum.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from cgraph.schedule.dag import Dag

AHEAD = 8  # nodes examined together


def eager(dag: Dag) -> tuple[int, ...]:
    """Return the order; nodes keep their positions where nothing can be gained."""
    run = _EagerRun(dag)
    for node in range(len(dag.nbytes)):
        if not run.done[node]:
            run.execute([node])
    return tuple(run.order)


class _EagerRun:
    """A schedule under construction. Changes: with every node that runs.

    Fields
        missing: for each node, the operands that have not run
        waiting: for each node, the users that have not run
    """

    def __init__(self, dag: Dag) -> None:
        self.dag = dag
        self.done = [False] * len(dag.nbytes)
        self.missing = [len(operands) for operands in dag.distinct]
        self.waiting = [len(users) for users in dag.users]
        self.order: list[int] = []

    def execute(self, nodes: Iterable[int]) -> None:
        """Run these nodes, and whatever can then run at no cost."""
        todo = deque(nodes)
        while todo:
            node = todo.popleft()
            if self.done[node]:
                continue
            self.step(node)
            for user in self.touched(node):
                if not self.done[user]:
                    todo.extend(self.worth_running(user))

    def step(self, node: int) -> None:
        self.done[node] = True
        self.order.append(node)
        for user in self.dag.users[node]:
            self.missing[user] -= 1
        for x in self.dag.distinct[node]:
            self.waiting[x] -= 1

    def touched(self, node: int) -> list[int]:
        """Return the nodes whose cost may have fallen: users of the node, and the last users of its operands."""
        nodes = list(self.dag.users[node])
        for x in self.dag.distinct[node]:
            if self.waiting[x] == 1:
                nodes += self.dag.users[x]
        return [user for user in nodes if not self.missing[user]]

    def worth_running(self, node: int) -> Sequence[int]:
        """Return the node and those that it makes ready, up to where they free the bytes that they need; none if they
        never do.
        """
        dag, group, inside = self.dag, [node], {node}
        missing: dict[int, int] = {}
        waiting: dict[int, int] = {}
        balance = 0
        for i in range(AHEAD):
            if i == len(group):
                return ()
            this = group[i]
            balance += dag.nbytes[this]
            if not dag.users[this] and this not in dag.lasting:
                balance -= dag.nbytes[this]
            for x in dag.distinct[this]:
                waiting[x] = waiting.get(x, self.waiting[x]) - 1
                if not waiting[x] and x not in dag.lasting:
                    balance -= dag.nbytes[x]
            if balance <= 0:
                return group[: i + 1]
            for user in dag.users[this]:
                missing[user] = missing.get(user, self.missing[user]) - 1
                if not missing[user] and user not in inside:
                    inside.add(user)
                    group.append(user)
        return ()
