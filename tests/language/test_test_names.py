"""Every module that holds logic has a test file of its name."""

import ast
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
LOGIC = ast.If | ast.For | ast.While | ast.IfExp | ast.comprehension | ast.Match | ast.Try
FAMILY_FILES = ("emit", "calls", "signature")  # of a kernel family, which has one test file for each kind of processor


def holds_logic(path: Path) -> bool:
    """Return True if a file has a branch or a loop."""
    return any(isinstance(node, LOGIC) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


# modules that share their name with one of another part, whose test file is the only one of that name
WITHOUT = {
    "cgraph/budget/fit.py",
    "cgraph/cli/export.py",
    "cgraph/engine/cpu/instance.py",
    "cgraph/engine/cpu/memory.py",
    "cgraph/engine/cpu/program.py",
    "cgraph/engine/cuda/program.py",
    "cgraph/engine/cuda/segments.py",
    "cgraph/engine/cuda/simulator/memory.py",
    "cgraph/engine/export.py",
    "cgraph/engine/instance.py",
    "cgraph/formats/onnx/operators/control.py",
    "cgraph/formats/onnx/operators/pointwise.py",
    "cgraph/formats/onnx/operators/trees.py",
    "cgraph/formats/onnx/operators/window.py",
    "cgraph/formats/tflite/operators/pointwise.py",
    "cgraph/formats/tflite/operators/quantise.py",
    "cgraph/memory/blocks.py",
    "cgraph/memory/layout.py",
    "cgraph/memory/search/kernel.py",
    "cgraph/ops/physical/conv.py",
    "cgraph/ops/physical/rounds.py",
    "cgraph/ops/physical/stream.py",
    "cgraph/quantiser/layers.py",
    "cgraph/quantiser/rebuild.py",
    "cgraph/quantiser/report.py",
    "cgraph/standalone/check.py",
    "cgraph/standalone/names.py",
    "nn/models/mask_rcnn/tools/frames.py",
}


@cache
def modules() -> list[Path]:
    return [path for top in ("cgraph", "nn") for path in sorted((ROOT / top).rglob("*.py")) if holds_logic(path)]


@cache
def counts() -> Counter[str]:
    return Counter(path.stem for path in modules())


def patterns_of(path: Path) -> list[str]:
    """Return patterns of the test file of a module, below ``tests``: anywhere if no other module has its name, else in
    the folder of its part of the library, or with the name of its package before its own.
    """
    parts, package = path.relative_to(ROOT).with_suffix("").parts, path.parent.name
    if parts[-1] == "__init__":
        return [f"**/test_{package}.py"]
    stem = parts[-1].strip("_")
    part = "nn" if parts[0] == "nn" else parts[1]
    patterns = [
        f"**/test_{package}_{stem}.py",
        f"{part}/**/test_{stem}.py" if counts()[stem] > 1 else f"**/test_{stem}.py",
    ]
    if parts[:2] == ("cgraph", "kernels") and len(parts) == 4 and stem.removeprefix("gpu_") in FAMILY_FILES:
        patterns.append(f"kernels/test_{'gpu_' if stem.startswith('gpu_') else ''}{package}.py")
    return patterns


def is_there(pattern: str, folders: dict[str, list[str]]) -> bool:
    """Whether one of the folders of a test file's name fits a pattern such as ``part/**/test_name.py``."""
    top, _, name = pattern.rpartition("/")
    below = top.removesuffix("**")
    return any(folder == top or top != below and f"{folder}/".startswith(below) for folder in folders[name])


def test_each_module_with_a_branch_or_a_loop_has_a_test_file_of_its_name():
    assert len(modules()) > 700
    folders = defaultdict(list)
    for path in TESTS.rglob("test_*.py"):
        folders[path.name].append(path.parent.relative_to(TESTS).as_posix())
    missing = {
        str(path.relative_to(ROOT)) for path in modules() if not any(is_there(x, folders) for x in patterns_of(path))
    }
    assert missing <= WITHOUT


def test_each_has_at_least_a_test_file_of_its_name_somewhere():
    """The rule without the parts of the library, which `WITHOUT` does not weaken."""
    names = {path.name for path in TESTS.rglob("test_*.py")}
    bare = {path: {pattern.rpartition("/")[2] for pattern in patterns_of(path)} for path in modules()}
    assert [str(path) for path in modules() if not bare[path] & names] == []


@pytest.mark.parametrize(
    ("module", "patterns"),
    [
        (
            "cgraph/kernels/sort/gpu_emit.py",
            ["**/test_sort_gpu_emit.py", "kernels/**/test_gpu_emit.py", "kernels/test_gpu_sort.py"],
        ),
        ("cgraph/kernels/conv/epilogue.py", ["**/test_conv_epilogue.py", "kernels/**/test_epilogue.py"]),
        ("nn/layers/linear.py", ["**/test_layers_linear.py", "nn/**/test_linear.py"]),
        ("cgraph/autodiff.py", ["**/test_cgraph_autodiff.py", "**/test_autodiff.py"]),
        ("nn/__init__.py", ["**/test_nn.py"]),
    ],
)
def test_names_that_several_modules_share_name_the_part(module, patterns):
    assert patterns_of(ROOT / module) == patterns
