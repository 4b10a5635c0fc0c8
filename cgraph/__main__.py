"""``python -m cgraph``: the command line, if the script `cgraph` is not on the path."""

from cgraph.cli import program

if __name__ == "__main__":
    raise SystemExit(program())
