"""Where values are stored outside the arena: cells of Vars, weight files, streams of rows, arenas that are shared."""
