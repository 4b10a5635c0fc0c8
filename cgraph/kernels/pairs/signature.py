"""How pairs of bfloat16 numbers are stored."""

PAIRS = "i4"  # how weights are held that are pairs of bfloat16 numbers, two channels of one filter
