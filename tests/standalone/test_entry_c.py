"""The entry as C: words of 64 bits, addresses by name, parameters that no table shadows, and loops as jumps."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.control import BEGIN, BETWEEN, REPEAT, SKIP
from cgraph.kernels.target import host_target
from cgraph.standalone.entry_c import argument, c_entry, c_pointer, c_word, is_late, jump_lines
from cgraph.standalone.memory import static_layout
from cgraph.standalone.program import Address, Moving, RowJump
from tests.support.exported import require, run_export
from tests.support.exports import counter, facts

INTERFACE = counter().interface


@pytest.mark.parametrize(("number", "text"), [
    (0, "N(0x0, 0x0)"), (5, "N(0x5, 0x0)"), (-1, "N(0xffffffff, 0xffffffff)"), (2**32 + 3, "N(0x3, 0x1)"),
    (-(2**63), "N(0x0, 0x80000000)"),
])  # fmt: skip
def test_a_number_is_two_words_of_32_bits(number, text):
    assert c_word(number, INTERFACE) == text


def test_addresses_name_their_memory():
    assert c_pointer(Address("arena", 64), INTERFACE) == "arena + 64"
    assert c_pointer(Address("constants", 8), INTERFACE) == "m_constants + 8"
    assert c_pointer(Address("state:mean", 4), INTERFACE) == "(uint8_t *)m_mean + 4"
    assert c_pointer(Address("stop", 0), INTERFACE) == "(uint8_t *)&stop_word + 0"
    assert c_pointer(Address("done", 8), INTERFACE) == "(uint8_t *)&done_word + 8"
    assert c_pointer(Address("in:at", 12), INTERFACE) == "(const uint8_t *)in1 + 12"
    assert c_pointer(Address("out:total", 0), INTERFACE) == "(uint8_t *)out0 + 0"
    moving = Moving(Moving(Address("arena", 8), 1, 16), 4, -4)
    assert c_pointer(moving, INTERFACE) == "arena + 8 + round1 * 16 + round4 * -4"
    assert c_word(Address("arena", 64), INTERFACE) == "A(arena + 64)"
    for late in (Address("in:x", 4), moving):
        assert is_late(late) and c_word(late, INTERFACE) == "N(0, 0)"
    assert not any(map(is_late, (7, Address("arena", 0), Address("state:mean", 0))))
    assert argument(INTERFACE, "out", "some") == "out1"


def test_jumps_begin_repeat_and_skip():
    def lines(**fields) -> str:
        return " ".join("\n".join(jump_lines(RowJump(**fields), INTERFACE)).split())

    assert lines(kind=BEGIN, to=9, loop=2, rounds=5) == "round2 = 0; if (round2 >= 5) goto row9;"
    assert lines(kind=REPEAT, to=3, loop=2, rounds=5) == "if (++round2 < 5) goto row3;"
    assert lines(kind=SKIP, to=7, at=Address("arena", 3), value=1) == "if (*(arena + 3) != 1) goto row7;"
    assert lines(kind=BETWEEN, to=7, at=Address("arena", 8), value=2, high=4) == (
        "if (*(const int64_t *)(arena + 8) <= INT64_C(2) || *(const int64_t *)(arena + 8) > INT64_C(4)) goto row7;"
    )


def test_the_text_has_every_call_copy_and_stop():
    program = counter(keeps_start=True)
    text = c_entry(program, static_layout(), facts(has_reset=True, has_threads=True))
    for n, row in enumerate(program.rows):
        assert f"static const word a{n}[]" in text
        assert (
            f"m_k{row.kernel}, {'w' if any(map(is_late, row.words)) else f'a{n}'}, {row.tasks}, {row.chunk});" in text
        )
        assert (f"return {1 + row.label};" in text) or not row.can_stop
    assert sum(row.can_stop for row in program.rows) == text.count("stop_word = 0; return")
    for copy in (*program.first_copies, *program.last_copies):
        assert f"memcpy({argument(program.interface, 'out', copy.output)}, " in text
    assert f"memcpy(m_mean, m_constants + {program.start_state['mean']}, 1200);" in text
    assert "m_reset" not in c_entry(counter(), static_layout(), facts())
    assert "/* in0 is x, in1 is at, out0 is total, out1 is some */" in text


@pytest.mark.parametrize("names", [("w", "arena"), ("a0", "memcpy"), ("round0", "stop_word")])
def test_users_names_may_be_those_of_tables_and_locals(names, tmp_path):
    require("cc", "gcc")
    x, y = (cg.Var((5,), name=name) for name in names)
    state = cg.Var((5,), name="k0").assign(np.ones(5))
    outputs = [cg.cumprod(cg.cumsum(x, 0) + y, 0) + state]
    folder = tmp_path / "m"
    cg.export(outputs, [x, y], folder, target=host_target().name, updates={state: state + x}, form="c")
    assert run_export(folder).outputs == (folder / "check" / "out.bin").read_bytes()
