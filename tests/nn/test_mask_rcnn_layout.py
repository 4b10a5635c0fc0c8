"""The library part of Mask R-CNN stands alone; only its facade reaches for the tools."""

import ast
from pathlib import Path

import nn.models.mask_rcnn as package

FOLDER = Path(package.__file__).parent
TOOLS = "nn.models.mask_rcnn.tools"


def test_the_library_imports_no_tool_except_in_the_detector():
    importers = {
        path.stem
        for path in FOLDER.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(TOOLS)
    }
    assert importers == {"detector"}
