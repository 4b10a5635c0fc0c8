"""Storage of pairs of bfloat16 numbers."""

PAIRS = "i4"  # storage dtype of weights that are pairs of bfloat16 numbers, two channels of one filter
