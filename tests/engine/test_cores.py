"""Reading the quotas of control groups."""

import os
from pathlib import Path

import pytest

import cgraph as cg
from cgraph.engine.cpu import cores as cores_module
from cgraph.engine.cpu.cores import cores, quota_of
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.memory import memory_nbytes


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
        ("0::/user/me\n", {"user/me/cpu.max": "300000 100000\n", "user/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/user/me\n", {"user/me/cpu.max": "150000 100000\n", "user/cpu.max": "300000 100000\n"}, 1.5),
        (
            "5:cpuset:/box\n",
            {"cpuset/box/cpu.cfs_quota_us": "10000", "cpuset/box/cpu.cfs_period_us": "100000"},
            None,
        ),
        (
            "4:cpu,cpuacct:/box\n",
            {"cpu,cpuacct/box/cpu.cfs_quota_us": "50000", "cpu,cpuacct/box/cpu.cfs_period_us": "100000"},
            0.5,
        ),
        ("4:cpu,cpuacct:/box\n", {"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2.0),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("7:memory:/box\n", {"memory/box/cpu.cfs_quota_us": "50000", "memory/box/cpu.cfs_period_us": "100000"}, None),
        ("", {}, None),
        ("0::/a:b\n", {"a:b/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b/c\n", {"a/b/c/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, 0.5),
        ("4:cpu:/box\n", {"cpu/box/cpu.cfs_quota_us": "0", "cpu/box/cpu.cfs_period_us": "100000"}, None),
        ("4:cpu:/box\n", {"cpu/box/cpu.cfs_quota_us": "50000"}, None),
        (
            "5:cpuacct,cpu:/box\n",
            {"cpuacct,cpu/box/cpu.cfs_quota_us": "250000", "cpuacct,cpu/box/cpu.cfs_period_us": "100000"},
            2.5,
        ),
        (
            "4:cpu:/box\n0::/me\n",
            {
                "cpu/box/cpu.cfs_quota_us": "300000",
                "cpu/box/cpu.cfs_period_us": "100000",
                "me/cpu.max": "max 100000\n",
            },
            3.0,
        ),
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


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/user/me\n", {"user/me/memory.max": "5000\n", "user/memory.max": "9000\n"}, 5000),
        ("0::/user/me\n", {"user/me/memory.max": "9000\n", "user/memory.max": "5000\n"}, 5000),
        ("0::/user/me\n", {"user/me/memory.max": "max\n", "memory.max": "7000\n"}, 7000),
        ("9:memory:/box\n4:cpu:/box\n", {"memory/box/memory.limit_in_bytes": "8000"}, 8000),
        ("4:cpu:/box\n", {"cpu/box/memory.limit_in_bytes": "8000"}, None),
        ("9:memory:/box\n", {"memory/box/memory.limit_in_bytes": "9223372036854771712"}, None),
        ("0::/\n", {}, None),
    ],
)
def test_memory_is_the_least_limit_of_the_groups_of_memory_and_of_the_machine(tmp_path, groups, files, limit):
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    written(tmp_path, {"groups": groups})
    mount = written(tmp_path / "mount", files)
    mount.mkdir(exist_ok=True)
    assert memory_nbytes(tmp_path / "groups", mount) == (machine if limit is None else limit)


@pytest.mark.parametrize(
    ("allowed", "quota", "count"),
    [(8, None, 8), (8, 2.9, 2), (8, 2.0, 2), (8, 0.5, 1), (2, 6.0, 2), (3, 3.0, 3), (1, 0.99, 1)],
)
def test_cores_are_the_whole_ones_of_the_quota_among_those_that_are_allowed(monkeypatch, allowed, quota, count):
    monkeypatch.setattr(cores_module, "allowed_processors", lambda: allowed)
    monkeypatch.setattr(
        cores_module, "quota_of", lambda *where: {("/proc/self/cgroup", "/sys/fs/cgroup"): quota}[where]
    )
    assert cores.__wrapped__() == count


def test_a_program_runs_on_the_processors_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr("cgraph.engine.cpu.engine.cores", lambda: 5)
    x = cg.Var((3,))
    for threads, count in ((0, 5), (2, 2)):
        assert cg.compile(cg.exp(x), x, engine=CpuEngine(threads=threads)).program.threads == count
