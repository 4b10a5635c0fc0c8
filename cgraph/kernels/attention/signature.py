"""Signature of attention in bands of queries; strides are in elements."""

from cgraph.kernels.signature import Args, Signature

KEYS = 60  # keys of a block, whose weights for a band of queries stay in L1: a multiple of a tile's 4, 6 or 12 rows

ARGS: Args = {
    # groups: heads of keys; queries: those that share one, `m` from each of its heads; `each` units to a task
    "groups": "i8", "heads": "i8", "queries": "i8", "m": "i8", "n": "i8", "d": "i8", "e": "i8",
    "bands": "i8", "units": "i8", "each": "i8", "scale": "f8", "window": "i8", "cap": "f8",
    "q": "dtype*", "q_batch": "i8", "q_head": "i8", "q_row": "i8", "q_step": "i8",
    "k": "dtype*", "k_batch": "i8", "k_head": "i8", "k_row": "i8", "k_step": "i8",
    "v": "dtype*", "v_batch": "i8", "v_head": "i8", "v_row": "i8", "v_step": "i8",
    "out": "dtype*", "o_batch": "i8", "o_head": "i8", "o_row": "i8", "o_step": "i8",
    "masks": "address?", "s_batch": "i8", "s_head": "i8", "s_row": "i8", "s_step": "i8",
    "start": "address?", "start_step": "i8",
    # of a task: queries, result and weights of a band with queries side by side, and the state of softmax
    "scratch": "dtype*", "scratch_size": "i8",
}  # fmt: skip

# rule: whether later keys are hidden, scores are capped, and queries without a finite maximum have weights of 0
# mask: "" for none, "bool", or "added" for numbers; spread: all queries have the same mask
# rest: rows of the tile of one vector that computes the last band, 0 where it is like the others
BANDS = Signature("attention.bands", ("dtype", "rows", "vectors", "rest", "mask", "spread", "rule"), ARGS)
