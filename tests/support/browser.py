"""A real browser without a window and without a network, or the reason why there is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1500,900"
).split()


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A driver of a fresh Chromium, or skip the test."""
    program, driver = which("chromium"), which("chromedriver")
    if not program or not driver:
        pytest.skip("the programs chromium and chromedriver are not installed")
    webdriver = pytest.importorskip("selenium.webdriver", reason="the package selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield browser
    finally:
        browser.quit()
