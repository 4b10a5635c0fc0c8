"""Reading the quotas of control groups."""

import os
from pathlib import Path

import pytest

from cgraph.engine.cpu.cores import cores, quota_of


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("groups", "files", "quota"),
    [
        ("0::/user/me\n", {"user/me/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/user/me\n", {"user/me/cpu.max": "max 100000\n", "user/cpu.max": "300000 100000\n"}, 3.0),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        (
            "4:cpu,cpuacct:/box\n",
            {"cpu,cpuacct/box/cpu.cfs_quota_us": "50000", "cpu,cpuacct/box/cpu.cfs_period_us": "100000"},
            0.5,
        ),
        ("4:cpu,cpuacct:/box\n", {"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2.0),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("7:memory:/box\n", {"memory/box/cpu.cfs_quota_us": "50000", "memory/box/cpu.cfs_period_us": "100000"}, None),
        ("", {}, None),
    ],
)
def test_the_smallest_quota_of_a_group_and_its_parents_counts(tmp_path, groups, files, quota):
    listing = tmp_path / "listing"
    listing.write_text(groups)
    assert quota_of(listing, written(tmp_path / "mount", files)) == quota


def test_without_control_groups_there_is_no_quota(tmp_path):
    assert quota_of(tmp_path / "absent", tmp_path) is None


def test_cores_are_at_most_those_of_the_affinity():
    assert 1 <= cores() <= (os.cpu_count() or 1)
