"""A processor without a table of instructions: LLVM selects them, for 128-bit vectors and without intrinsics."""

from cgraph.kernels.isa.records import Architecture, Host, Target


def detect(host: Host) -> Target:
    """Return the target of a host."""
    return Target("portable", host.cpu, host.features, 4, 32, True, "generic")


ARCHITECTURE = Architecture("generic", (), {}, detect=detect)
