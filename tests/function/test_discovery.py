"""What a user finds without reading: completion, signatures, nearest names of misspelt options, short tracebacks."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import OptionError, ShapeError
from cgraph.ir import node_methods
from cgraph.ir.graph import METHODS
from cgraph.numpy import methods
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords, CompileOptions
from cgraph.record import Record
from cgraph.tracebacks import VARIABLE

X = cg.Var((3,), name="x")
DATA = nn.Loader((np.zeros((4, 3), "f4"), np.zeros(4, "i4")), batch=2)


# -- options -----------------------------------------------------------------------------------------------------------


def test_every_option_of_compile_is_a_typed_keyword_with_a_line_of_its_own():
    parameters = inspect.signature(cg.compile).parameters
    assert list(parameters)[3:] == list(COMPILE_KEYWORDS) == list(CompileKeywords.__annotations__)
    for name in COMPILE_KEYWORDS:
        assert parameters[name].annotation not in (inspect.Parameter.empty, "Any")
        assert f"        {name}: " in (cg.compile.__doc__ or "")
    for name in CompileOptions._fields:
        assert parameters[name].default == CompileOptions._defaults[name], name


MISSPELT = {
    "compile has no option 'budgett'; did you mean 'budget'": lambda: cg.compile(X + 1, [X], budgett=3),
    "compile has no option 'speed'. Use one of outputs, inputs, updates, engine": lambda: cg.compile(
        X + 1, [X], speed=9
    ),
    "train has no option 'epoch'; did you mean 'epochs'": lambda: nn.train(nn.Linear(3, 2), DATA, epoch=1),
    "train has no option 'budgt'; did you mean 'budget'": lambda: nn.train(nn.Linear(3, 2), DATA, budgt=1),
    "compile has no option 'frozn'; did you mean 'frozen'": lambda: nn.compile(nn.Linear(3, 2), frozn=False),
    "training_step has no option 'target'; did you mean 'targets'": lambda: nn.training_step(
        nn.Linear(3, 2), nn.losses.l2, None, (), target=2
    ),
    "Generator has no option 'seeds'; did you mean 'seed'": lambda: nn.Generator(None, seeds=1),
    "compile_sizes has no option 'mosts'; did you mean 'most'": lambda: cg.compile_sizes(None, {}, mosts=1),
}


@pytest.mark.parametrize("text", MISSPELT)
def test_a_misspelt_option_names_the_function_and_the_nearest_name(text):
    with pytest.raises(OptionError, match=text) as caught:
        MISSPELT[text]()
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, cg.GraphError)


# -- completion and signatures -----------------------------------------------------------------------------------------


def test_completion_of_a_node_lists_its_methods_and_all_of_them_work_by_name():
    matrix = cg.Var((2, 3)) + 1
    names = dir(matrix)
    assert {"eval", "item", "sum", "mean", "reshape", "astype", "T", "shape"} <= set(names)
    assert all(hasattr(matrix, name) for name in names)


def test_type_checkers_know_the_methods_that_nodes_have():
    tree = ast.parse(Path(node_methods.__file__).read_text())
    declared = {x.name for x in ast.walk(tree) if isinstance(x, ast.FunctionDef)}
    declared |= {x.target.id for x in ast.walk(tree) if isinstance(x, ast.AnnAssign)}
    assert declared == METHODS | methods.METHODS.keys() | methods.ATTRIBUTES.keys()


def test_completion_of_the_package_lists_its_packages():
    assert {"numpy", "array_api", "formats", "dist", "quantiser", "view", "nn", "compile", "sin"} <= set(dir(cg))
    assert cg.nn is nn


@pytest.mark.parametrize("module", [
    *(getattr(cg.formats, name) for name in dir(cg.formats)),
    cg.array_api, cg.dist, cg.quantiser, cg.view, nn, nn.layers, nn.models, nn.optim, nn.losses, nn.metrics,
], ids=lambda x: x.__name__)  # fmt: skip
def test_completion_of_a_module_lists_its_public_names_alone(module):
    assert sorted(module.__all__) == dir(module)
    assert all(hasattr(module, name) for name in dir(module))


def test_signatures_of_layers_and_settings_are_their_fields():
    assert str(inspect.signature(nn.Linear)).startswith("(inputs: int, outputs: int, use_bias: bool = True, start: ")
    assert list(inspect.signature(nn.Loader).parameters) == list(nn.Loader._fields)
    assert str(inspect.signature(nn.Sequential)).startswith("(*parts: ")
    assert inspect.signature(nn.Linear(3, 2)).parameters.keys() == inspect.signature(
        nn.Layer.__call__
    ).parameters.keys() - {"self"}


def test_a_field_without_default_after_one_with_a_default_is_keyword_only_in_the_signature():
    class Parent(Record):
        a: int
        b: list = ()

    class Child(Parent):
        c: str

    kinds = [str(x) for x in inspect.signature(Child).parameters.values()]
    assert kinds == ["a: int", "b: list = ()", "c: str"]
    assert inspect.signature(Child).parameters["c"].kind is inspect.Parameter.KEYWORD_ONLY


# -- tracebacks --------------------------------------------------------------------------------------------------------

SCRIPT = """
import numpy as np
import cgraph as cg

def network(x):
    return np.concatenate([x, cg.Var((4, 5))])

network(cg.Var((2, 3)))
"""


def traceback_of(script: str, folder: Path, **environment: str) -> str:
    (folder / "script.py").write_text(script)
    variables = {**os.environ, "PYTHONPATH": str(Path(cg.__file__).parents[1]), **environment}
    command = [sys.executable, "script.py"]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False).stderr


def files_of(traceback: str) -> list[str]:
    return [line.split('"')[1] for line in traceback.splitlines() if line.startswith('  File "')]


def test_a_traceback_ends_at_the_users_line_and_the_whole_one_is_an_option(tmp_path):
    short = traceback_of(SCRIPT, tmp_path)
    assert [Path(x).name for x in files_of(short)] == ["script.py", "script.py"]
    assert "cgraph.errors.ShapeError: concat at script.py:6" in short and f"{VARIABLE}=full" in short
    full = traceback_of(SCRIPT, tmp_path, **{VARIABLE: "full"})
    assert len(files_of(full)) > 2 and "are hidden" not in full


def test_other_errors_are_printed_as_before(tmp_path):
    printed = traceback_of("import cgraph\nimport sys\nsys.excepthook.__name__\n{}['key']", tmp_path)
    assert printed.endswith("KeyError: 'key'\n") and "hidden" not in printed


def test_notebooks_get_the_same_lines_and_the_error_keeps_its_frames_and_its_cause():
    with pytest.raises(ShapeError) as caught:
        X + cg.Var((4,))
    lines = caught.value._render_traceback_()
    assert (
        not [x for x in files_of("\n".join(lines)) if Path(x).parent.name == "ir"] and "do not broadcast" in lines[-2]
    )
    assert len(list(inspect.getinnerframes(caught.tb))) > 1
    with pytest.raises(cg.CgraphError) as caught:
        try:
            {}["key"]
        except KeyError as error:
            raise cg.GraphError("no") from error
    text = "\n".join(caught.value.short_traceback())
    assert "KeyError: 'key'" in text and "direct cause" in text and text.endswith("GraphError: no")
