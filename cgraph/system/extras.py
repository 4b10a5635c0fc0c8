"""Packages that only parts of the library need: errors that say what to install, from the distribution's metadata."""

import re

from cgraph.errors import UnavailableError

COMMAND = "cgraph"  # the console script, by which the distribution is recognised
TOGETHER = ("dev", "bench", "examples")  # extras that hold others


def missing_package(package: str, purpose: str) -> UnavailableError:
    """Return the error for a package that is not installed.

    Parameters
        package: its name on the package index, such as ``h5py``
        purpose: what needs it, as the subject of a sentence in the plural, such as ``Keras files``
    """
    return UnavailableError(f"{purpose} need the package {package}: {install_command(package)}")


def install_command(package: str) -> str:
    """Return the command that installs a package: the smallest extra that has it, or the package itself."""
    from importlib.metadata import entry_points

    for script in entry_points(group="console_scripts", name=COMMAND):
        if script.value == "cgraph.cli:program" and script.dist is not None:
            extra = extra_of(package, script.dist.requires or [])
            return f"pip install '{script.dist.name}[{extra}]'" if extra else f"pip install {package}"
    return f"pip install {package}"


def extra_of(package: str, requirements: list[str]) -> str | None:
    """Return the extra with the fewest packages, this one among them; None if no extra has it.

    Parameters
        requirements: lines of metadata, such as ``h5py>=3.11; extra == 'h5'``
    """
    packages: dict[str, list[str]] = {}
    for line in requirements:
        match = re.match(r"\s*([\w.-]+).*\bextra\s*==\s*['\"]([\w.-]+)['\"]", line)
        if match:
            packages.setdefault(match[2], []).append(normal(match[1]))
    extras = [extra for extra, names in packages.items() if normal(package) in names]
    return min(extras, key=lambda extra: (extra in TOGETHER, len(packages[extra])), default=None)


def normal(name: str) -> str:
    """Return a package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
