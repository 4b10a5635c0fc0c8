"""python -m benchmarks.fuzz READER [--seconds N] [--count N] [--seed S]: read mutated files, report all trouble.

Exit status 1 when there was any; each kind is written to ``out/fuzz``, as small as it could be made.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.fuzz.campaign import run, table
from benchmarks.fuzz.readers import READERS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--seconds", type=float, help="at most; 60 without a count")
    parser.add_argument("--count", type=int, help="files to read at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    args = parser.parse_args()
    seconds = 60 if args.seconds is None and args.count is None else args.seconds
    found = run(args.reader, args.seed, args.count, seconds)
    print(table(found))
    for trouble in found.troubles:
        print(trouble.written(args.out, args.reader))
    return int(bool(found.troubles))


if __name__ == "__main__":
    sys.exit(main())
