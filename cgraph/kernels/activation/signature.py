"""The activation that multiply-add kernels apply before they store, as `cgraph.kernels.activation.calls` says it."""

# general: more than the lower bound is needed
ACTIVATION = {"general": "i8", "low": "f8", "high": "f8", "slope": "f8"}
