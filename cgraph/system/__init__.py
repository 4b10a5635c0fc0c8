"""Services of the operating system: aligned memory, atomic files, file ownership, fair locks, progress lines."""
