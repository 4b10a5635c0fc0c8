"""Limits that a plan must meet."""


def recompute_nbytes(recompute: bool | float) -> int | None:
    """The bytes that `recompute` allows; None where it is True, False or a share of the work."""
    return None if isinstance(recompute, bool | float) else recompute
