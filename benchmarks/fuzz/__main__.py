"""python -m benchmarks.fuzz READER [--seconds N] [--count N] [--seed S]: read mutated files, report all trouble. Exit
status 1 if there was any; a file of each kind is minimised and written to ``out/fuzz``.

python -m benchmarks.fuzz --amplify [READER]: a table of what repeated constructs cost, of all readers or of one; exit
status 1 when a construct is flagged.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.fuzz.all_constructs import CONSTRUCTS
from benchmarks.fuzz.amplify import HEAD, measure_constructs
from benchmarks.fuzz.campaign import run, table
from benchmarks.fuzz.readers import READERS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("reader", choices=READERS, nargs="?")
    parser.add_argument("--amplify", action="store_true", help="measure files that repeat a construct")
    parser.add_argument("--seconds", type=float, help="at most; 60 without a count")
    parser.add_argument("--count", type=int, help="files to read at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    args = parser.parse_args()
    if args.amplify:
        return amplified([args.reader] if args.reader else list(CONSTRUCTS))
    if args.reader is None:
        parser.error("a reader is missing")
    seconds = 60 if args.seconds is None and args.count is None else args.seconds
    found = run(args.reader, args.seed, args.count, seconds)
    print(table(found))
    for trouble in found.troubles:
        print(trouble.written(args.out, args.reader))
    return int(bool(found.troubles))


def amplified(readers: list[str]) -> int:
    """Print the table of constructs; return 1 if one is flagged."""
    print(HEAD)
    flags = 0
    for reader in readers:
        for row in measure_constructs(reader, CONSTRUCTS[reader]):
            print(row.text(), flush=True)
            flags += bool(row.flag)
    return int(bool(flags))


if __name__ == "__main__":
    sys.exit(main())
