"""What the operating system gives: aligned memory, atomic files, file ownership, fair locks, progress lines."""
