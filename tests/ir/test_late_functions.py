"""A table of functions imports a module when one of its functions is read."""

import sys
from importlib import invalidate_caches

import pytest

from cgraph.ir.late_functions import LateFunctions


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Two modules, of which one enters a function in the table."""
    functions = LateFunctions()
    (tmp_path / "late_one.py").write_text("import late_table\nlate_table.functions['one'] = lambda: 1\n")
    (tmp_path / "late_none.py").write_text("")
    (tmp_path / "late_table.py").write_text("functions = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    import late_table

    late_table.functions = functions
    functions.list_modules({"late_one": "one", "late_none": "two three"})
    yield functions
    for name in ("late_one", "late_none", "late_table"):
        sys.modules.pop(name, None)


def test_names_are_there_before_their_modules(table):
    assert list(table) == ["one", "two", "three"] and len(table) == 3
    assert "one" in table and "three" in table and "four" not in table
    assert "late_one" not in sys.modules and "late_none" not in sys.modules


def test_a_function_is_read_with_its_module_alone(table):
    assert table["one"]() == 1 and table.get("one") is table["one"]
    assert "late_one" in sys.modules and "late_none" not in sys.modules
    assert list(table) == ["one", "two", "three"] and len(table) == 3


def test_a_name_that_its_module_does_not_enter_is_missing(table):
    with pytest.raises(KeyError, match="two"):
        table["two"]
    with pytest.raises(KeyError, match="four"):
        table["four"]
    assert table.get("four", 4) == 4


def test_functions_enter_without_a_list_and_leave(table):
    table["four"] = len
    assert list(table) == ["one", "two", "three", "four"] and len(table) == 4 and table["four"] is len
    del table["four"]
    assert "four" not in table and len(table) == 3
    with pytest.raises(KeyError):
        del table["four"]


def test_modules_may_be_listed_one_after_another(table):
    table.list_modules({"late_more": "five one"})
    assert list(table) == ["one", "two", "three", "five"]


def test_a_module_whose_import_was_interrupted_is_imported_again(table, tmp_path):
    """The function that it had entered belongs to a module that is gone."""
    text = "import late_table\nlate_table.functions['one'] = lambda: last\n"
    (tmp_path / "late_one.py").write_text(text + "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        table["one"]
    (tmp_path / "late_one.py").write_text(text + "last = 'complete'\n")
    invalidate_caches()
    assert table["one"]() == "complete"
