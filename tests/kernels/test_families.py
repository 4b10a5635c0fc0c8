"""Kernel families by name, and the text of a call: params, arguments, lists, floats by their bits."""

import re
import struct

import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.families import place_of, signature_of, text_of, word_text
from cgraph.kernels.gemm.signature import TILE
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.move.signature import FILLS
from cgraph.kernels.signature import Words
from tests.kernels.test_kernels_signature import fill_args


@pytest.mark.parametrize(
    ("family", "part", "module", "name"),
    [
        ("gemm.tile", "emit", "cgraph.kernels.gemm.emit", "tile"),
        ("gemm.tile", "signature", "cgraph.kernels.gemm.signature", "tile"),
        ("gemm.gpu.product", "emit", "cgraph.kernels.gemm.gpu_emit", "product"),
        ("a.b.c.d", "emit", "cgraph.kernels.a.b_c_emit", "d"),
    ],
)
def test_a_family_has_its_module_and_its_name_there(family, part, module, name):
    assert place_of(family, part) == (module, name)


def test_a_signature_is_found_once_by_its_family():
    assert signature_of("gemm.tile") is TILE and signature_of("move.fills") is FILLS
    with pytest.raises(ModuleNotFoundError):
        signature_of("nothing.tile")
    with pytest.raises(AttributeError):
        signature_of("gemm.nothing")


def bits(x):
    return struct.unpack("q", struct.pack("d", x))[0]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("i8", 5, "5"),
        ("f8", 0.5, "0.5"),
        ("f8", bits(-0.25), "-0.25"),
        ("f8", bits(float("inf")), "inf"),
        ("i8", bits(0.25), str(bits(0.25))),
        ("address?", None, "None"),
        ("f4*", "arena+64", "arena+64"),
        (Words(("i8", "f8"), lambda _: 2), (1, bits(1.5), 2, bits(2.5)), "[1 1.5 2 2.5]"),
        (Words(("i8",), lambda _: 0), (), "[]"),
    ],
)
def test_words_are_shown_by_their_kind(kind, value, text):
    assert word_text(kind, value) == text


def test_a_call_is_shown_with_the_names_of_its_params_and_arguments():
    call = FILLS.call((4, False), 3, **fill_args())
    text = text_of(call.kernel, ["arena+64", "constant0+0", *call.args[2:]])
    assert text.startswith("move.fills(itemsize=4 stream=False) out=arena+64 x=constant0+0 columns=8 ")
    assert text.endswith(" rank=1 axes=[1 0 0]")
    words = [*(f"x{i}" for i in range(8)), 8, 5, 3, 0.5, int(np.array(-1.0).view(np.int64))]
    assert " share=0.5 least=-1.0" in text_of(Kernel("boxes.suppress", ("f4", False, 8)), words)


def test_the_code_of_a_function_is_shown_with_the_names_of_its_arguments():
    x = cg.Var((40, 30), name="x")
    text = cg.compile(cg.sum(x @ np.ones((30, 20), "f4"), axis=0), [x]).program.code.text()
    for line in text.splitlines():
        family = signature_of(re.search(r": (\w+\.\w+)\(", line)[1])
        assert all(f" {name}=" in line for name in family.args)
