"""Time limits of members that wait for one another. Every wait has a bound."""

from cgraph.record import Record


class Limits(Record):
    """Time limits in seconds.

    Fields
        silence: without a byte from somebody who is waited for, until they are asked whether they are there
        answer: until they have answered, or are taken for gone
        step: for what somebody is at who does answer: the longest that a step may take
        gather: for the first member to be ready, at the beginning or after all have gone
        round: that the members go on without a word to the client
    """

    silence: float = 1.0
    answer: float = 3.0
    step: float = 600.0
    gather: float = 120.0
    round: float = 3.0
