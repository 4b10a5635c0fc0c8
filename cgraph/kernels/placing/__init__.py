"""Placement of operands in an arena: native loops of the memory planner."""
