"""The reference: every public name stands in one group and has an example, and every example gives what it shows."""

import doctest
import inspect
import json
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

from docs import reference
from docs.groups import Group

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NEEDS = {
    "onnx.": "onnx",
    "keras_h5.": "h5py",
    "picture_folder": "PIL",
    "PictureFiles": "PIL",
    "map_batches": "dask",
    "DaskSamples": "dask",
    "data_parallel": "distributed",
    "TensorBoard": "tensorboardX",
}
# names without an example: what needs a service, files that are long to write, bases, classes that functions return
WITHOUT = {
    "cgraph.formats": {
        *("tflite.load", "torch_file.read_torch", "deep_compression.read_deep_compression"),
    },
    "nn": {"shifted"},
}


@pytest.mark.parametrize("module", reference.MODULES)
def test_the_examples_of_a_module_give_what_they_show(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    missing = {part: package for part, package in NEEDS.items() if find_spec(package) is None}
    for name, text in reference.examples(module).items():
        if name.startswith(tuple(missing)):
            continue
        names: dict = {"__name__": "__main__"}
        exec(reference.head(module), names)
        example = doctest.DocTestParser().get_doctest(text, names, f"{module}: {name}", None, 0)
        with np.printoptions(precision=4):
            doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(example, out=report.append)
    assert report == []
    if any(name.startswith(tuple(missing)) for name in reference.examples(module)):
        pytest.skip(f"not installed: {', '.join(missing.values())}")


@pytest.mark.parametrize("module", reference.MODULES)
def test_every_name_has_an_example(module):
    documented = reference.documented(import_module(module))
    shown = set(reference.examples(module))
    sessions = {name for name, x in documented.items() if ">>>" in (x.__doc__ or "")}
    assert set(documented) - sessions - shown == WITHOUT.get(module, set())
    assert shown <= set(documented)


@pytest.mark.parametrize("module", reference.MODULES)
def test_every_name_is_in_one_group(module):
    groups = reference.grouped(import_module(module))
    names = [name for _, part in groups for name in part]
    assert sorted(names) == sorted(reference.documented(import_module(module)))
    assert len(groups) == 1 or "Other names" not in [group.title for group, _ in groups]


def sessions():
    """Public names whose docstring holds an interpreter session."""
    for module in reference.MODULES:
        for name, x in reference.documented(import_module(module)).items():
            if ">>>" in (x.__doc__ or ""):
                yield pytest.param(x, id=f"{module}:{name}")


@pytest.mark.parametrize("documented", [*sessions()])
def test_a_session_in_a_docstring_gives_what_it_shows(documented, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(reference.HEAD, names)
    text = inspect.getdoc(documented)
    example = doctest.DocTestParser().get_doctest(text, names, documented.__name__, None, 0)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(example, out=report.append)
    assert report == []


def test_sessions_and_sections_of_a_docstring_are_markdown():
    text = "One line.\n\n    Raises, when called\n        E: bad\n    Example\n        >>> f(1)\n        2\n\n    More."
    lines = "\n".join(reference.markdown(text))
    assert "**Raises, when called**\n\n- `E`: bad" in lines and "```pycon\n>>> f(1)\n2\n```" in lines


def test_sections_of_a_docstring_are_lists():
    text = """One line, with ``code``.

    Parameters
        x: an array
            of several lines
        y, z: others
    Raises
        ShapeError: it does not fit

    And more.
    """
    assert "\n".join(reference.markdown(text)) == (
        "One line, with `code`.\n\n\n**Parameters**\n\n- `x`: an array\n  of several lines\n- `y, z`: others\n\n"
        "**Raises**\n\n- `ShapeError`: it does not fit\n\nAnd more."
    )


def test_a_signature_has_types_and_long_ones_a_line_for_each_argument():
    nn = import_module("nn")
    assert reference.called("Linear", nn.Linear).splitlines()[1:3] == ["    inputs: int,", "    outputs: int,"]
    assert reference.called("accuracy", nn.metrics.accuracy) == "accuracy() -> Metric"
    assert "loss: Callable[..., Node | dict[str, Node]] = cross_entropy," in reference.called("train", nn.train)
    assert reference.called("compile", import_module("cgraph").compile).count("    *,") == 1


def test_a_group_has_its_names_its_modules_and_its_submodule():
    assert Group("g", names=("abs",)).has("abs", abs) and not Group("g", names=("abs",)).has("sum", sum)
    assert Group("g", modules=("json",)).has("dumps", json.dumps)
    assert not Group("g", modules=("jso",)).has("dumps", json.dumps)
    assert Group("g", submodule="linalg").has("linalg.inv", abs) and not Group("g", submodule="fft").has("abs", abs)
    assert Group("the rest").has("anything", abs)
