"""From a physical graph and the options of `compile` to a checked plan."""
