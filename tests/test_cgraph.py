"""The package's own names: what each leads to, what is loaded with it, and names that are not there."""

import subprocess
import sys
from importlib import import_module

import pytest

import cgraph
from cgraph import APART, NAMES, PACKAGES, PICTURES


def output(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_each_name_is_of_the_module_that_defines_it_and_stays_after_the_first_use():
    listed = [name for names in NAMES.values() for name in names]
    assert len(listed) == len(set(listed)) and not set(listed) & {*PICTURES, *PACKAGES}
    for module, names in NAMES.items():
        for name in names:
            value = getattr(cgraph, name)
            assert value is getattr(import_module(module), name) is vars(cgraph)[name]
            assert getattr(value, "__module__", module) == module or not hasattr(value, "__qualname__"), name


def test_packages_pictures_and_ops_are_names():
    assert all(getattr(cgraph, name).__name__ == f"cgraph.{name}" for name in PACKAGES)
    assert cgraph.nn is import_module("nn") and callable(cgraph.graph_dot)
    assert all(callable(getattr(cgraph, name)) for name in PICTURES)
    assert cgraph.conv2d is cgraph.OPS["conv2d"] and cgraph.vmap is import_module("cgraph.transforms.vectorise").vmap


@pytest.mark.parametrize("pictures", ["loaded", "not loaded"])
def test_all_lists_names_pictures_and_ops_and_dir_packages_as_well(monkeypatch, pictures):
    """Whether or not the view was loaded, which adds pictures to the functions."""
    import_module("cgraph.view")
    functions = {name: x for name, x in cgraph.OPS.items() if name not in PICTURES or pictures == "loaded"}
    monkeypatch.setattr(cgraph, "_functions", lambda: functions)
    names = cgraph.__all__
    assert len(names) == len(set(names)) and {*PICTURES, "compile", "conv2d", "Var", "__version__"} <= set(names)
    assert not set(PACKAGES) & set(names) and {*PACKAGES, "nn", *names} == set(dir(cgraph))


@pytest.mark.parametrize("name, words", [
    ("conv2b", "cgraph has no attribute 'conv2b'.*conv2"), ("__wrapped__", "cgraph has no attribute '__wrapped__'"),
    ("__nothing__", "cgraph has no attribute '__nothing__'$"),
])  # fmt: skip
def test_a_name_that_is_not_there_is_refused(name, words):
    with pytest.raises(AttributeError, match=words):
        getattr(cgraph, name)


def test_names_apart_load_no_graph_and_others_load_every_op():
    count = "; import sys; print('cgraph.ir.graph' in sys.modules, 'cgraph.ops.conv' in sys.modules)"
    assert output(f"import cgraph; cgraph.SavedFunction; cgraph.ShapeError; cgraph.__version__{count}") == "False False"
    assert output(f"import cgraph; cgraph.Var{count}") == "True True"
    assert set(APART) <= set(NAMES)


def test_an_import_of_a_name_is_the_same_as_the_attribute():
    assert output("from cgraph import relu, Const, view; print(relu(Const([-1.0, 2.0])).eval(), view.__name__)") == (
        "[0. 2.] cgraph.view"
    )
