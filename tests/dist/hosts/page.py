"""The blocks of docs/dist.md that start a cluster on several machines."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def commands() -> tuple[str, str, str]:
    """Return what the page tells users to run: certificates, the scheduler, a worker."""
    first, second, third = re.findall(r"^```sh\n(.*?)^```", page(), re.DOTALL | re.MULTILINE)
    return first, second, third


def client_code() -> str:
    """Return the page's lines that open a Client."""
    (code,) = re.findall(r"^```py\n(.*?)^```", page(), re.DOTALL | re.MULTILINE)
    return code


def page() -> str:
    return (ROOT / "docs" / "dist.md").read_text()
