"""A name that `cgraph` lacks is an error that names what to use instead."""

import pytest

import cgraph as cg
from cgraph.numpy.missing import ELSEWHERE, missing_name


@pytest.mark.parametrize(("name", "remedy"), [
    ("histogram", "use np.histogram or cg.numpy.histogram, which take nodes"), ("array", ELSEWHERE["array"]),
    ("compil", "the nearest is cg.compile"), ("qqqqqq", "see dir(cgraph)"), ("float_power", "use np.float_power or"),
    ("Compile", "the nearest is cg.compile"), ("VAR", "the nearest is cg.Var"),
    ("pi", "see dir(cgraph)"), ("mul", "use cg.multiply, or *"),
])  # fmt: skip
def test_the_way_out_of_each_kind(name, remedy):
    error = missing_name(name, ["compile", "Var", "multiply"])
    assert isinstance(error, AttributeError)
    assert str(error).startswith(f"cgraph has no attribute {name!r}; {remedy}")


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_of_other_libraries_lead_to_names_that_exist(name):
    assert ELSEWHERE[name] in str(missing_name(name, dir(cg)))
    words = ELSEWHERE[name].replace("(", " ").replace(",", " ").split()
    own = [word.removeprefix("cg.") for word in words if word.startswith("cg.")]
    assert own and all(hasattr(cg, part.split(".")[0]) for part in own)
