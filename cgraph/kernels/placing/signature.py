"""Placement of operands in an arena, as one task: each operand is compared with all others.

All arrays are int64; those of the first two families extend for one vector beyond their last item.
"""

from cgraph.kernels.signature import Signature

FAR = 2**63 - 1  # further than any offset, step or column
VECTOR = 8  # items at most

# operands in the order of placing: nbytes, first and last step, and, as result, offsets [n]; for those before `start`
# begin, end, first and last step [4, room], by ascending begin, then -1
IN_GAPS = Signature(
    "placing.in_gaps",
    (),
    {
        "nbytes": "i8*", "first": "i8*", "last": "i8*", "offsets": "i8*",
        "placed": "i8*", "room": "i8", "start": "i8", "stop": "i8",
    },
)  # fmt: skip

# operands by first column: nbytes, first and last column, shortness (less for those that last longer, FAR once they are
# placed), and, found here, offsets [n]; the first operand of each column [columns + 1]; how many lines there are; where
# they begin and how high they are [2, room], from left to right, between two lines at FAR
IN_LINES = Signature(
    "placing.in_lines",
    (),
    {
        "nbytes": "i8*", "first": "i8*", "last": "i8*", "shortness": "i8*", "offsets": "i8*", "operands": "i8*",
        "line_count": "i8*", "lines": "i8*", "room": "i8", "start": "i8", "stop": "i8",
    },
)  # fmt: skip

# groups [count] in the order of placing; per group the place of its neighbours in the
# lists below [n + 1]; per neighbour which group it is, and an open interval of bytes after its start in
# which the group may not begin; where groups begin, -1 for those that are not placed, found here for these [n]
FIRST_FIT = Signature(
    "placing.first_fit",
    (),
    {
        "order": "i8*", "places": "i8*", "others": "i8*", "begins": "i8*", "ends": "i8*", "bases": "i8*",
        "alignment": "i8", "count": "i8",
    },
)  # fmt: skip
