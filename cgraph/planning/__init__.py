"""Plans: from a physical graph and the options of `compile` to a checked memory plan."""
