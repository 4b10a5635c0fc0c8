"""The accessibility checker axe-core (an npm package), or the reason why there is none."""

import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLACE = Path("axe-core") / "axe.min.js"
RUN = """
const done = arguments[0];
axe.run(document, {resultTypes: ["violations"]}).then((result) => done(result.violations));
"""


def axe_script() -> str:
    """Return the checker's text, or skip the test. ``npm install axe-core`` in the repository or ``-g`` installs it."""
    folders = [ROOT / "node_modules"]
    if which("npm"):
        shown = subprocess.run(["npm", "root", "--global"], capture_output=True, text=True, timeout=60, check=False)
        folders.append(Path(shown.stdout.strip()))
    path = next((folder / PLACE for folder in folders if (folder / PLACE).exists()), None)
    if path is None:
        pytest.skip("the npm package axe-core is not installed")
    return path.read_text(encoding="utf-8")


def serious_findings(browser: Any, script: str) -> list[str]:
    """Return what axe calls serious or critical on the present page: its rule, and the elements."""
    browser.set_script_timeout(120)
    browser.execute_script(script)
    found = [x for x in browser.execute_async_script(RUN) if x["impact"] in ("serious", "critical")]
    places = {x["id"]: [" ".join(map(str, node["target"])) for node in x["nodes"][:5]] for x in found}
    return [f"{x['impact']} {x['id']}: {x['help']}: {len(x['nodes'])} × {places[x['id']]}" for x in found]


def show_as(browser: Any, width: int, scheme: str) -> None:
    """Give the page this width, and a ``light`` or ``dark`` scheme."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    preference = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preference]})
