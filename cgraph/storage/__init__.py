"""Storage of values outside the arena: cells of Vars, weight files, row streams, shared arenas."""
