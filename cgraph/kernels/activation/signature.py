"""The activation that multiply-add kernels apply before they store, as defined in `cgraph.kernels.activation.calls`."""

# general: 1 if the activation has an upper bound or a slope
ACTIVATION = {"general": "i8", "low": "f8", "high": "f8", "slope": "f8"}
