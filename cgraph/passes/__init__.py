"""Passes in the order in which `compile` runs them; each is ``outputs -> outputs``. `lower_cpu` comes after them."""

from cgraph.passes.drop_identities import drop_identities
from cgraph.passes.fold_constants import fold_constants
from cgraph.passes.fold_norm import fold_norm
from cgraph.passes.fuse_epilogues import fuse_epilogues
from cgraph.passes.fuse_matmul import fuse_matmul
from cgraph.passes.fuse_pointwise import fuse_pointwise
from cgraph.passes.tidy_loops import tidy_loops

PASSES = (tidy_loops, fold_constants, fold_norm, drop_identities, fuse_epilogues, fuse_matmul, fuse_pointwise)
