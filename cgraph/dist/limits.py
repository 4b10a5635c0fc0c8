"""Time limits of members that wait for one another. Every wait has a bound."""

from cgraph.record import Record


class Limits(Record):
    """Time limits in seconds.

    Fields
        silence: time without a byte from a member, after which it is asked whether it is alive
        answer: time for this answer, after which the member counts as gone
        step: maximum time of a step, for members that do answer
        gather: time for the first member to be ready, at the beginning or after all have gone
        round: maximum time in which members get no message from the client
    """

    silence: float = 1.0
    answer: float = 3.0
    step: float = 600.0
    gather: float = 120.0
    round: float = 3.0
