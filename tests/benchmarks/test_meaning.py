"""Faults of meaning: each kind makes the mistakes that its name says, and nothing that does not read."""

import ast
from collections import Counter

import pytest

from benchmarks.meaning import KINDS, meaning_faults_of
from benchmarks.mutants import ROOT, drawn

SOURCE = '''"""Words that stay."""


class Table:
    def __init__(self, most: int = 8):
        self.entries = {}
        self.latest = None

    def look_up(self, rows, columns, dtype, *, exact=False):
        """Text that stays."""
        key = (rows, columns, dtype)
        with self.lock:
            self.latest = None
            if key not in self.entries:
                self.entries[key] = make(rows, columns, dtype=dtype, exact=exact)
            del self.pending[key]
        return self.entries[key]

    def copied(self, path, names):
        file = open(path)
        try:
            for name in names:
                size = file.shape[0]
                file.write(name, min(size, 3))
        finally:
            file.close()
        self.entries.clear()


def cache_key(a, b):
    note(f"{a, b}")
    return a, b


def forever(first, last):
    for i in count():
        assert first <= last
        return [x for x in first]
    note(last)
'''


def changed(fault):
    return SOURCE[: fault.start] + fault.text + SOURCE[fault.end :]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("swapped arguments", "self.entries[key] = (make(columns, rows, dtype=dtype, exact=exact))"),
        ("swapped arguments", "self.entries[key] = (make(rows, columns, dtype=exact, exact=dtype))"),
        ("forgotten option", "self.entries[key] = (make(rows, columns, dtype=dtype))"),
        ("forgotten option", "self.entries[key] = (make(rows, columns, exact=exact))"),
        ("short key", "key = ((rows, columns))"),
        ("short key", "key = ((columns, dtype))"),
        ("short key", "return ((b,))"),
        ("missing lock", "with (__import__('contextlib').nullcontext()):"),
        ("early end", "break"),
        ("wrong default", "def __init__(self, most: int = (9)):"),
        ("wrong default", "def look_up(self, rows, columns, dtype, *, exact=(True)):"),
        ("one of two", "for name in (list(names)[:-1]):"),
        ("one of two", "return [x for x in (list(first)[:-1])]"),
        ("one of two", "size = (file.shape[1])"),
        ("one of two", "file.write(name, (max)(size, 3))"),
        ("other name of a pair", "key = ((columns), columns, dtype)"),
        ("other name of a pair", "note((first))"),
        ("kept resource", "if __import__('sys').exc_info()[0] is None:"),
    ],
)
def test_the_mistakes_of_a_kind_are_among_its_faults(name, line):
    texts = [changed(fault) for fault in meaning_faults_of(SOURCE) if fault.name == name]
    assert any(line in map(str.strip, text.splitlines()) for text in texts)
    assert line not in map(str.strip, SOURCE.splitlines())


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("dropped clear", "del self.pending[key]"),
        ("dropped clear", "self.entries.clear()"),
        ("dropped clear", "self.latest = None"),
        ("early end", "self.entries.clear()"),
        ("early end", "note(last)"),
        ("kept resource", "file.close()"),
    ],
)
def test_a_statement_is_left_out(name, line):
    texts = [changed(fault) for fault in meaning_faults_of(SOURCE) if fault.name == name]
    assert any(text.count(line) == SOURCE.count(line) - 1 for text in texts)


def test_every_fault_is_another_program_that_reads():
    faults = meaning_faults_of(SOURCE)
    trees = [ast.dump(ast.parse(changed(fault))) for fault in faults]
    assert ast.dump(ast.parse(SOURCE)) not in trees
    assert {fault.name for fault in faults} == set(KINDS)


def test_a_loop_that_ends_after_its_first_element_keeps_its_indentation():
    (fault,) = (x for x in meaning_faults_of(SOURCE) if x.name == "early end" and "break" in x.text)
    loop = next(x for x in ast.walk(ast.parse(changed(fault))) if isinstance(x, ast.For) and x.lineno == 22)
    assert isinstance(loop.body[-1], ast.Break)


@pytest.mark.parametrize(
    "text",
    ["min(3, size)", "list(count())", "Words that go", "note(f'{b, a}')", "assert last", "entries = 0", "pass  # init"],
)
def test_what_cannot_matter_or_cannot_run_is_left_alone(text):
    assert all(text not in changed(fault) for fault in meaning_faults_of(SOURCE))


def test_what_a_new_object_starts_with_is_not_left_out():
    lines = {fault.line for fault in meaning_faults_of(SOURCE) if fault.name == "dropped clear"}
    assert lines.isdisjoint({6, 7})


def test_every_kind_is_drawn_as_often_as_the_others():
    sources = dict.fromkeys(("a.py", "b.py", "c.py"), SOURCE)
    some = drawn(sources, 10, 1, "meaning")
    assert some == drawn(sources, 10, 1, "meaning") != drawn(sources, 10, 2, "meaning")
    assert len({(x.file, x.fault.start, x.fault.end) for x in some}) == 10
    counts = Counter(x.fault.name for x in some)
    assert counts == dict.fromkeys(KINDS, 1)


def test_no_more_are_drawn_than_there_are_places():
    places = {(x.start, x.end) for x in meaning_faults_of(SOURCE)}
    assert len(drawn({"a.py": SOURCE}, 10_000, 0, "meaning")) == len(places)


@pytest.mark.parametrize("folder", ["ir", "autodiff", "schedule", "saved"])
def test_every_fault_of_the_sources_reads(folder):
    for path in sorted((ROOT / "cgraph" / folder).rglob("*.py")):
        source = path.read_text()
        for fault in meaning_faults_of(source)[::7]:
            ast.parse(source[: fault.start] + fault.text + source[fault.end :])
