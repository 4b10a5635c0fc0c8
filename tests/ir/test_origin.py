"""Nodes know the line that made them, and a line of a file only as long as the file is read."""

import sys

import pytest

import cgraph as cg
from cgraph.ir.origin import keeps_origin, origin_at, user_line


def here() -> tuple[str, int]:
    """File and line of the caller."""
    frame = sys._getframe(1)
    return frame.f_code.co_filename, frame.f_lineno


def test_a_node_comes_from_the_line_of_the_user():
    x = cg.Var((2,), name="x")
    (y, place) = (cg.sin(x), here())
    assert y.origin == place


def test_the_line_of_a_file_holds_inside_its_block_alone():
    with origin_at("net.onnx", 3):
        assert user_line() == ("net.onnx", 3)
        with origin_at("net.onnx", 4):
            assert user_line() == ("net.onnx", 4)
        assert user_line() == ("net.onnx", 3)
    assert user_line()[0] != "net.onnx"


def test_a_failure_inside_the_block_ends_it():
    with pytest.raises(ZeroDivisionError), origin_at("net.onnx", 3):
        raise ZeroDivisionError
    assert user_line()[0] != "net.onnx"


def test_a_function_that_keeps_its_place_leaves_no_line_behind():
    @keeps_origin
    def read() -> tuple[str, int]:
        block = origin_at("net.onnx", 7)
        block.__enter__()
        return user_line()

    assert read() == ("net.onnx", 7)
    assert user_line()[0] != "net.onnx"
