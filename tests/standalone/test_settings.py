"""Settings of an export: names by the folder, a start that constants keep, and refusals."""

import pytest

from cgraph.errors import FormatError
from cgraph.standalone.settings import settings_of


def test_the_folder_gives_the_prefix_unless_there_is_a_name(tmp_path):
    assert settings_of(tmp_path / "a b", "neon").prefix == "a_b"
    how = settings_of(tmp_path / "a b", "neon", name="net", names=["y"])
    assert (how.prefix, how.folder, how.machine, list(how.names)) == ("net", tmp_path / "a b", "neon", ["y"])


@pytest.mark.parametrize(("settings", "keeps"), [({}, False), ({"reset": True}, True), ({"memory": "caller"}, True)])
def test_the_start_is_kept_where_something_restores_it(settings, keeps, tmp_path):
    assert settings_of(tmp_path / "m", "neon", **settings).keeps_start is keeps


@pytest.mark.parametrize(("machine", "settings", "match"), [
    ("z80", {}, "there is no target 'z80'"),
    ("neon", {"form": "fast"}, "form is 'fast'. Use one of whole, small, shared, c"),
    ("neon", {"memory": "heap"}, "memory is 'heap'. Use one of static, caller"),
    ("neon", {"form": "c", "memory": "caller"}, "the form 'c' has static memory"),
    ("wasm32", {"form": "c"}, "linked module with static memory"),
    ("wasm32", {"memory": "caller"}, "linked module with static memory"),
    ("neon", {"name": "int"}, "'int' cannot begin"),
])  # fmt: skip
def test_settings_that_do_not_fit_are_refused(machine, settings, match, tmp_path):
    with pytest.raises(FormatError, match=match):
        settings_of(tmp_path / "m", machine, **settings)


def test_a_folder_that_exists_is_refused(tmp_path):
    with pytest.raises(FormatError, match="exists already"):
        settings_of(tmp_path, "neon")
