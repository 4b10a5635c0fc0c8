"""Operating systems: what their names in LLVM's triples say about code."""


def errno_function(triple: str) -> str:
    """Return the name of the C function that returns the address of errno."""
    return "__errno_location" if "linux" in triple else "__error"


def is_windows(triple: str) -> bool:
    """Return True for Windows, which has other functions than POSIX for clocks, sleep and files."""
    return "windows" in triple


def has_elf(triple: str) -> bool:
    """Return True if object files are ELF."""
    return "linux" in triple
