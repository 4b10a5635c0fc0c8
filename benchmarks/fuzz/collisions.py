"""Keys of dictionaries with equal hashes: Python's hash of numbers, and of tuples of them, is not randomised."""

FIRST, SECOND, FIFTH, WORD = 11400714785074694791, 14029467366897019727, 2870177450012600261, 1 << 64
LARGEST = (1 << 61) - 2  # smaller numbers are their own hash


def pairs_of_one_hash(count: int) -> list[tuple[int, int]]:
    """Return so many pairs of 64-bit integers with one hash, by xxHash's constants as in CPython's tuples."""
    found: list[tuple[int, int]] = []
    number, inverse = 0, pow(SECOND, -1, WORD)
    while len(found) < count:
        number += 1
        lane = (FIFTH + number * SECOND) % WORD
        lane = (lane << 31 | lane >> 33) % WORD * FIRST % WORD
        other = (12345 - lane) * inverse % WORD
        other -= WORD * (other >> 63)
        if abs(other) < LARGEST and other != -1:
            found.append((number, other))
    return found
