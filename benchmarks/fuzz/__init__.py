"""Mutated files for every reader: ``python -m benchmarks.fuzz READER --seconds N``; see docs/fuzzing.md."""
