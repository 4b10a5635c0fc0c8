"""Images of machine code in memory: addresses in them, C functions by name, what a system refuses."""

import ctypes
import os

import numpy as np
import pytest

from cgraph.kernels import code_image
from cgraph.kernels.code_image import Image, UnknownCode, c_function, place_image
from cgraph.kernels.isa.architectures import host_architecture
from cgraph.kernels.objects import link_objects
from cgraph.record import replace
from cgraph.system import c_library
from tests.kernels.test_kernels_objects import calling, on_linux


@on_linux
def test_code_that_calls_a_c_function_is_placed_if_there_is_one():
    memory, addresses = place_image(link_objects({"f": calling("getpid")}))
    assert ctypes.CFUNCTYPE(ctypes.c_int)(addresses["f"])() == os.getpid() and len(memory)
    with pytest.raises(UnknownCode, match="get_nothing"):
        place_image(link_objects({"f": calling("get_nothing")}))


@on_linux
def test_new_code_is_made_visible_to_a_processor_that_needs_it(monkeypatch):
    """libgcc has the function for every processor; without libgcc LLVM places the code."""
    calls, library = [], ctypes.CDLL

    def opened(name):
        calls.append(name)
        if len(calls) > 1:
            raise OSError("no such file")
        return library(name)

    changed = replace(host_architecture(), clear_cache="__clear_cache")
    monkeypatch.setattr(code_image, "host_architecture", lambda: changed)
    image = link_objects({"f": calling("getpid")})
    code_image.c_library()
    monkeypatch.setattr(ctypes, "CDLL", opened)
    memory, addresses = place_image(image)
    assert ctypes.CFUNCTYPE(ctypes.c_int)(addresses["f"])() == os.getpid() and len(memory)
    with pytest.raises(UnknownCode, match="made visible to the processor: no such file"):
        place_image(image)
    assert calls == ["libgcc_s.so.1"] * 2


@pytest.mark.parametrize("plus", [0, 5, -3])
def test_what_is_added_to_the_address_of_a_c_function_is_added(plus):
    nothing = np.zeros((0, 2), np.int64)
    memory, _ = place_image(Image(np.zeros(16, np.uint8), {}, nothing, (("getpid", 8, plus),)))
    assert memory.view(np.int64).tolist() == [0, c_function("getpid") + plus]


@on_linux
def test_addresses_in_an_image_are_places_behind_its_beginning():
    """At byte 8 the address of byte 3, at byte 24 that of byte 0; what surrounds them stays."""
    code = np.arange(40, dtype="u1")
    memory, addresses = place_image(Image(code, {"f": 5, "g": 0}, np.array([[8, 3], [24, 0]]), ()))
    base = memory.ctypes.data
    assert addresses == {"f": base + 5, "g": base}
    assert memory[8:16].view("i8")[0] == base + 3 and memory[24:32].view("i8")[0] == base
    kept = np.r_[0:8, 16:24, 32:40]
    np.testing.assert_array_equal(memory[kept], code[kept])
    assert not code[8:16].any() or code[8] == 8  # the image itself is unchanged


@on_linux
def test_an_address_need_not_be_aligned():
    memory, _ = place_image(Image(np.zeros(20, np.uint8), {}, np.array([[3, 1]]), (("getpid", 11, 0),)))
    assert int.from_bytes(memory[3:11].tobytes(), "little") == memory.ctypes.data + 1
    assert int.from_bytes(memory[11:19].tobytes(), "little") == c_function("getpid")


@on_linux
def test_an_empty_image_has_memory_and_no_functions():
    memory, addresses = place_image(Image(np.zeros(0, np.uint8), {}, np.zeros((0, 2), np.int64), ()))
    assert len(memory) and addresses == {}


@pytest.mark.parametrize("name", ["no_such_function", "scipy_lapack_nothing", "", "x" * 200])
def test_a_function_that_there_is_not_is_named_at_most_in_part(name):
    with pytest.raises(UnknownCode, match=f"^there is no C function '{name[:79]}"):
        c_function(name)


def test_a_function_of_lapack_is_scipys_and_another_that_of_the_process():
    from cgraph.system.scipy_lapack import address_of

    assert c_function("scipy_lapack_dgesv") == address_of("dgesv") != 0
    assert c_function("getpid") == ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value


@on_linux
def test_a_system_that_refuses_executable_memory_is_heard(monkeypatch):
    class Library:
        @staticmethod
        def mprotect(*_):
            return -1

    monkeypatch.setattr(c_library, "c_library", lambda: Library)
    with pytest.raises(UnknownCode, match="the system refuses to make 7 bytes executable"):
        place_image(Image(np.zeros(7, np.uint8), {}, np.zeros((0, 2), np.int64), ()))
