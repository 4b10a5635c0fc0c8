"""The faults that a mutation run makes: each is a module that still reads, and differs in one place."""

import ast
import os
import sys
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest

from benchmarks import mutant_tests, mutants
from benchmarks.draw_faults import Drawn, draw_functions, drawn, hand_faults
from benchmarks.faults import Fault, faults_of
from benchmarks.mutant_record import MISSED, NOTICED, Verdict, append_verdict, read_record, table_of
from benchmarks.mutant_runs import BUDGET, Ending, cache_of, chosen, ended, in_child, run_tests
from benchmarks.mutant_tests import ROOT, TESTS, files_of, part_of
from benchmarks.reach import Reach

SOURCE = '''"""Words that stay."""


def largest(xs, limit: int | None = 3):
    """Text that stays."""
    best = 0
    assert isinstance(best, int) and best < 9
    for i, x in enumerate(xs):
        if x > best and not x < 0:  # μ: columns are bytes
            best = x
            note(f"{x + 1}")
    if best > limit:
        raise ValueError(best)
    return best + 1 if best else None
'''


def changed(fault):
    return SOURCE[: fault.start] + fault.text + SOURCE[fault.end :]


def test_every_fault_is_another_program():
    texts = [changed(fault) for fault in faults_of(SOURCE)]
    trees = [ast.dump(ast.parse(text)) for text in texts]
    assert ast.dump(ast.parse(SOURCE)) not in trees and len(set(trees)) == len(trees)
    assert all("Words that stay" in text and "Text that stay" in text for text in texts)


@pytest.mark.parametrize(
    "line",
    [
        "        if (x >= best) and not x < 0:  # μ: columns are bytes",
        "        if (x > best or not x < 0):  # μ: columns are bytes",
        "        if (not x < 0):  # μ: columns are bytes",
        "        if x > best and (x < 0):  # μ: columns are bytes",
        "        if (False):  # μ: columns are bytes",
        "            pass",
        "        pass",
        "    return None",
        "    return (best - 1) if best else None",
        "    best = (1)",
        "def largest(xs, limit: int | None = (4)):",
    ],
)
def test_the_faults_that_people_make_are_among_them(line):
    assert any(line in changed(fault).splitlines() for fault in faults_of(SOURCE))


def test_messages_are_left_alone():
    assert not any("x - 1" in changed(fault) for fault in faults_of(SOURCE))


def test_as_many_faults_are_drawn_as_asked_for_the_same_for_a_seed_and_each_in_a_place_of_its_own():
    sources = {"a.py": SOURCE, "b.py": SOURCE}
    some = drawn(sources, 5, 1)
    assert some == drawn(sources, 5, 1) != drawn(sources, 5, 2)
    assert len({(x.file, x.fault.start, x.fault.end) for x in some}) == 5
    assert all(x.fault in faults_of(SOURCE) and x.text() == changed(x.fault) for x in some)
    places = {(x.start, x.end) for x in faults_of(SOURCE)}
    assert len(drawn(sources, 1000, 0)) == 2 * len(places)


def test_a_fault_knows_the_function_that_it_is_in():
    begins = {x.line: x.function for x in faults_of(SOURCE + "\nLIMIT = 3\n")}
    assert begins[11] == 4 and begins[SOURCE.count("\n") + 2] > SOURCE.count("\n") + 2  # none


def test_the_tests_of_a_file_are_those_of_the_longest_path_that_contains_it():
    assert mutant_tests.tests_of("cgraph/kernels/store.py") == TESTS["kernels/store"]
    assert mutant_tests.tests_of("cgraph/kernels/mapped.py") == TESTS["kernels"]
    assert mutant_tests.tests_of("cgraph/record.py") == TESTS[""]
    assert mutant_tests.tests_of("cgraph/function.py") == TESTS["function"]
    assert mutant_tests.tests_of("nn/files.py") == TESTS["nn"]
    assert (
        mutant_tests.tests_of("cgraph/engine/cpu/ring_timing.py")
        == TESTS["engine/cpu/ring_timing"]
        != TESTS["engine/cpu/ring"]
    )
    assert mutant_tests.tests_of("cgraph/memory/packing_new.py") == TESTS["memory"]  # its name begins like another's


@pytest.mark.parametrize("module", [name for name in TESTS if name])
def test_every_module_of_the_table_exists(module):
    assert files_of(module)


@pytest.mark.parametrize("test", sorted({test for tests in TESTS.values() for test in tests}))
def test_every_test_of_the_table_exists(test):
    place = ROOT / test
    assert place.is_file() or any(place.rglob("test_*.py"))


def test_every_package_has_tests_of_its_own():
    folders = {p.parent.name for p in (ROOT / "cgraph").glob("*/__init__.py")}
    assert folders - {"engine"} <= TESTS.keys() and {"engine/cpu", "engine/cuda", "nn"} <= TESTS.keys()


def test_the_part_of_a_file_is_its_folder_or_itself():
    assert part_of("cgraph/engine/cpu/ring.py") == "engine"
    assert part_of("cgraph/sizes.py") == "sizes"
    assert part_of("nn/layers/conv.py") == "nn"


def test_a_module_is_a_file_or_all_files_of_a_folder():
    assert files_of("kernels/store") == ["cgraph/kernels/store.py"]
    assert {"nn/files.py", "nn/models/mobilenet_v1.py"} <= set(files_of("nn"))
    with pytest.raises(SystemExit, match="neither a file nor a folder"):
        files_of("no_such_module")


FAULT = Drawn("cgraph/a.py", Fault(12, 10, 0, 0, ""), "")
REACHED = {
    "tests/test_a.py::test_slow": (3.0, frozenset({("cgraph/a.py", 12)})),
    "tests/test_a.py::test_cases[x]": (2.0, frozenset({("cgraph/a.py", 12), ("cgraph/a.py", 3)})),
    "tests/test_a.py::test_cases[y]": (1.0, frozenset({("cgraph/a.py", 12)})),
    "tests/test_a.py::test_before": (1.0, frozenset({("cgraph/a.py", 11)})),
    "tests/test_a.py::test_other": (1.0, frozenset({("cgraph/b.py", 12)})),
    "tests/test_a.py::test_none": (1.0, frozenset()),
}


def names(line: int, function: int = 10, file: str = "cgraph/a.py") -> list[str]:
    found = chosen(REACHED, Drawn(file, Fault(line, function, 0, 0, ""), ""))
    return [test.split("::test_")[1] for test in found]


def test_a_fault_is_shown_to_the_tests_that_run_its_line_the_fastest_first():
    assert names(12) == ["cases[y]", "cases[x]", "slow"]


def test_a_line_that_no_test_runs_is_shown_to_those_that_come_nearest():
    assert names(13) == names(12)  # a line further on in the function
    assert names(11) == ["before"]
    assert names(20, function=15) == ["before", "cases[y]", "cases[x]", "slow"]  # a function that no test calls
    assert names(1, file="cgraph/c.py") == ["before", "cases[y]", "other", "cases[x]", "slow"]  # a file that none runs
    assert len(names(1, file="nn/c.py")) == len(REACHED)


def test_many_cases_of_one_test_leave_time_for_others():
    places = frozenset({("cgraph/a.py", 12)})
    reached = {f"tests/test_a.py::test_many[{i}]": (1.0, places) for i in range(2 * BUDGET)}
    reached["tests/test_a.py::test_other"] = (3.0, places)
    assert chosen(reached, FAULT).index("tests/test_a.py::test_other") <= 4


def test_no_more_tests_are_run_than_their_budget_allows():
    each = BUDGET / 3
    reached = {f"tests/test_a.py::test_{i}": (each, frozenset({("cgraph/a.py", 12)})) for i in range(9)}
    assert len(chosen(reached, FAULT)) in (3, 4)
    long = {"tests/test_a.py::test_long": (9 * BUDGET, frozenset({("cgraph/a.py", 12)}))}
    assert chosen(long, FAULT) == list(long)


def test_lines_are_those_that_a_test_runs_and_no_imports(pytester_like):
    reached = pytester_like(
        "import here\ndef test_one(): assert here.double(2) == 4\ndef test_two(): pass\n",
        "LIMIT = 3\n\n\ndef double(x):\n    if x > LIMIT:\n        return 0\n    return 2 * x\n",
    )
    assert {name.split("::")[1]: places for name, (_, places) in reached.items()} == {
        "test_one": {("here.py", 5), ("here.py", 7)},
        "test_two": set(),
    }


@pytest.fixture
def pytester_like(tmp_path):
    """Runs a file of tests beside a module in a process of its own; what they reach."""

    def run(tests: str, module: str):
        (tmp_path / "test_here.py").write_text(tests)
        (tmp_path / "here.py").write_text(module)
        plugin = Reach(tmp_path, ["here.py"])
        return in_child(tmp_path, lambda: (run_tests(["test_here.py"], plugin), plugin.reached)[1])

    return run


def endless():
    while True:
        pass


def test_a_child_that_dies_or_does_not_end_gives_nothing(tmp_path):
    assert in_child(tmp_path, lambda: Path.cwd()) == tmp_path
    assert in_child(tmp_path, lambda: os._exit(3)) is None
    assert in_child(tmp_path, endless, 1) is None
    assert Path.cwd() != tmp_path and ROOT.is_dir()


def test_the_second_fault_of_a_file_is_not_the_byte_code_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    tree, source = tmp_path / "tree", "VALUE = 1\n"
    for folder in (tree, cache_of(tree, False)):
        folder.mkdir(parents=True)
    (tree / "here.py").write_text(source)
    (tree / "test_here.py").write_text("import here\ndef test_one(): assert here.VALUE != 2\n")
    faults = [Drawn("here.py", Fault(1, 0, 8, 9, value, "another value"), source) for value in "3232"]
    endings = [ended(tree, each, ["test_here.py::test_one"], 1.0).verdict for each in faults]
    assert endings == [MISSED, NOTICED] * 2 and (tree / "here.py").read_text() == source


def test_annotations_and_assertions_are_left_alone():
    assert not any("int & None" in changed(fault) for fault in faults_of(SOURCE))
    assert all("assert isinstance(best, int) and best < 9" in changed(fault) for fault in faults_of(SOURCE))


@pytest.mark.slow
def test_most_faults_by_hand_fit_the_sources_and_each_changes_them():
    faults, stale = hand_faults()
    assert len({x.identity for x in faults}) == len(faults) >= 80 and len(stale) <= 20  # sources go on
    meaning = cache(lambda source: ast.dump(ast.parse(source)))  # of a file, for all its faults
    for x in faults:
        assert ast.dump(ast.parse(x.text())) != meaning(x.source), x.fault.name
        assert x.file in files_of(str(Path(x.file).relative_to("cgraph" if x.file[0] == "c" else ".").with_suffix("")))


TABLE = """
[[fault]]
file = "here.py"
says = "it is one more"
old = '''
    y = x
    return y'''
new = '''
    y = x
    return y + 1'''

[[fault]]
file = "here.py"
says = "its text is there no more"
old = "return z"
new = "return y"

[[fault]]
file = "here.py"
says = "its text is there twice"
old = "y"
new = "x"

[[fault]]
file = "away.py"
says = "its file is there no more"
old = "y"
new = "x"
"""


def test_a_fault_by_hand_lies_on_its_first_line_that_differs(tmp_path):
    (tmp_path / "here.py").write_text("def f(x):\n    y = x\n    return y\n")
    (tmp_path / "all.toml").write_text(TABLE)
    (fault,), stale = hand_faults(tmp_path, tmp_path)
    assert (fault.fault.line, fault.fault.function, fault.fault.name) == (3, 1, "it is one more")
    assert fault.text() == "def f(x):\n    y = x\n    return y + 1\n"
    assert [x.split(": ")[1] for x in stale] == [f"its {x}" for x in (
        "text is there no more", "text is there twice", "file is there no more",
    )]  # fmt: skip


def verdict(place: str, kind: str, end: str) -> Verdict:
    return Verdict(f"{place} {kind}", "0123456789", kind, 1, place, "name", end, "", 1.5)


def test_a_table_counts_what_was_noticed_by_part_and_kind():
    some = [
        verdict("cgraph/ops/pad.py:1", "small", NOTICED),
        verdict("cgraph/ops/pad.py:2", "small", MISSED),
        verdict("cgraph/ops/pad.py:3", "hand", "died"),
        verdict("nn/files.py:1", "small", NOTICED),
    ]
    assert table_of(some).splitlines() == [
        "| part | hand | small |",
        "| --- | --- | --- |",
        "| nn | – | 1 of 1, 100% |",
        "| ops | 1 of 1, 100% | 1 of 2, 50% |",
        "| all | 1 of 1, 100% | 2 of 3, 67% |",
    ]


def test_a_record_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "record.jsonl"
    some = [verdict("cgraph/ops/pad.py:1", "small", NOTICED), verdict("nn/é.py:1", "hand", MISSED)]
    assert read_record(None) == read_record(file) == []
    for each in some:
        append_verdict(file, each)
        append_verdict(None, each)
    assert read_record(file) == some


@pytest.fixture
def judged(monkeypatch, tmp_path):
    """Runs the tool with arguments, on faults that are listed here and noticed at once; the faults that it judged."""
    (tmp_path / "all.toml").write_text(TABLE.split('[[fault]]\nfile = "here.py"\nsays = "its text is there no')[0])
    places: list[str] = []

    def ended(tree, each, tests, seconds):
        places.append(each.file)
        return Ending(NOTICED, "tests/test_a.py::test_one", 0.25)

    def run(*options: str) -> list[str]:
        places.clear()
        monkeypatch.setattr(mutants, "hand_faults", lambda: hand_faults(tmp_path, tmp_path))
        monkeypatch.setattr(mutants, "copied_tree", lambda: nullcontext(tmp_path))
        monkeypatch.setattr(mutants, "reach", lambda *_: REACHED)
        monkeypatch.setattr(mutants, "ended", ended)
        monkeypatch.setattr("sys.argv", ["mutants", "--hand", *options])
        mutants.main()
        return list(places)

    return run


def test_a_fault_that_a_record_holds_is_judged_again_only_when_its_file_changes(judged, tmp_path, capsys):
    here, record = tmp_path / "here.py", str(tmp_path / "record.jsonl")
    here.write_text("def f(x):\n    y = x\n    return y\n")
    assert judged("--record", record) == ["here.py"]
    assert judged("--record", record) == []
    assert "1 of 1, 100%" in capsys.readouterr().out.splitlines()[-1]  # the table has it nevertheless
    assert judged() == ["here.py"]  # without a record
    here.write_text(here.read_text() + "z = 1\n")
    assert judged("--record", record) == ["here.py"]
    assert [x.by for x in read_record(Path(record))] == ["tests/test_a.py::test_one"] * 2


@pytest.mark.parametrize("options", [[], ["--summary"]])
def test_nothing_to_do_is_an_error(options, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["mutants", *options])
    with pytest.raises(SystemExit):
        mutants.main()
    assert "ass " in capsys.readouterr().err  # Pass


def test_failures_are_noted_whether_or_not_they_end_the_run(tmp_path):
    (tmp_path / "test_here.py").write_text("def test_a(): assert 0\ndef test_b(): assert 0\n")

    def failed(stop: bool) -> set[str]:
        plugin = Reach(tmp_path, [])
        run_tests(["test_here.py"], plugin, stop)
        return plugin.failed

    assert in_child(tmp_path, lambda: failed(True)) == {"test_here.py::test_a"}
    assert in_child(tmp_path, lambda: failed(False)) == {"test_here.py::test_a", "test_here.py::test_b"}


def test_functions_are_drawn_evenly_over_parts():
    long = "def f():\n" + "    pass\n" * 5
    sources = {f"cgraph/ops/{i}.py": long * 9 for i in range(9)} | {
        "nn/a.py": long,
        "cgraph/b.py": long,
        "cgraph/c.py": long,
    }
    sources["cgraph/ir/short.py"] = "def f():\n" + "    pass\n" * 4
    functions = draw_functions(sources, 6, 0)
    assert functions == draw_functions(sources, 6, 0) == sorted(set(functions))
    assert [x for x in functions if "ops" not in x[0]] == [("cgraph/b.py", 1), ("cgraph/c.py", 1), ("nn/a.py", 1)]
    assert len(functions) == 6 and all(line % 6 == 1 for _, line in functions)
    assert draw_functions(sources, 6, 1) != functions and len(draw_functions(sources, 1000, 0)) == 84
