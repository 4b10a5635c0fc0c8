"""The C header: sizes, parameters, steps that can fail, memory of the caller; and the example's names."""

import re
import shutil
import subprocess

import pytest

from cgraph.ir.spec import Spec
from cgraph.record import replace
from cgraph.standalone.header import (
    c_string,
    comment,
    error_text,
    example,
    example_of_all,
    header,
    header_of_all,
    parameters,
)
from cgraph.standalone.interface import Interface
from cgraph.standalone.memory import caller_layout, static_layout
from tests.support.exports import counter, facts


def defines(text: str) -> dict[str, str]:
    return dict(re.findall(r"#define (\S+) (\S+)", text))


def test_the_header_states_the_sizes_of_everything():
    program = counter()
    text = header(program, static_layout(), facts(has_reset=True))
    sizes = defines(text)
    assert int(sizes["M_ARENA_BYTES"]) == program.arena_nbytes and sizes["M_ABI"] == "1"
    assert (sizes["M_STATE_BYTES"], sizes["M_STACK_BYTES"]) == ("1200", "96")
    assert int(sizes["M_CONSTANT_BYTES"]) == len(program.constants) >= 1200
    assert [sizes[f"M_{name}_BYTES"] for name in ("INPUT_X", "INPUT_AT", "OUTPUT_TOTAL", "OUTPUT_SOME")] == [
        "1200", "12", "4", "12",
    ]  # fmt: skip
    assert "M_MEMORY_BYTES" not in sizes and "for a target (a-triple), graph d1." in text
    assert "From outside: memcpy." in text and "void m_reset(void);" in text
    assert "extern float m_mean[300]; /* float32[300] */" in text
    assert "int m_run(const float x[300], const int32_t at[3], float total[1], float some[3]);" in text
    assert text.count("#ifndef M_H") == 1 and text.rstrip().endswith("#endif")


def test_what_is_unknown_or_absent_is_left_out():
    text = header(counter(), static_layout(), facts(stack_nbytes=None, externals=()))
    assert "STACK" not in text and "From outside: nothing." in text and "reset" not in text and "parallel" not in text


def test_steps_that_can_fail_are_described_by_the_number_that_a_run_returns():
    program = counter()
    text = header(program, static_layout(), facts())
    stops = {1 + row.label: program.labels[row.label] for row in program.rows if row.can_stop}
    assert stops == program.errors
    assert all(f"case {number}: return {c_string(label)};" in text for number, label in stops.items())
    assert "/* Returns 0, or an error that m_error describes." in text


TEXTS = ["plain", "line\nend", 'a "quoted" \\ path', "what??/", "Größe", "\x7f\t"]


@pytest.mark.parametrize("language", ["c99", "c++17"])
def test_a_compiler_reads_the_descriptions_as_they_are(language, tmp_path):
    compiler = shutil.which("cc" if language == "c99" else "c++")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    source = tmp_path / ("m.c" if language == "c99" else "m.cpp")
    calls = [f"fwrite(m_error({i}), 1, strlen(m_error({i})) + 1, stdout);" for i in (0, *range(3, 3 + len(TEXTS)), 99)]
    lines = ["#include <stdio.h>", "#include <string.h>", *error_text("m", dict(enumerate(TEXTS, 3)))]
    source.write_text("\n".join([*lines, "int main(void) {", *calls, "return 0; }", ""]), encoding="ascii")
    command = [compiler, f"-std={language}", "-Wall", "-Wextra", "-pedantic", "-Werror", source, "-o", tmp_path / "m"]
    subprocess.run(command, check=True)
    said = subprocess.run([tmp_path / "m"], check=True, capture_output=True).stdout.decode()
    assert said.split("\0")[:-1] == ["no error", *TEXTS, "an unknown error"]


def test_only_visible_letters_of_ascii_stand_for_themselves():
    letters = {chr(i) for i in range(128) if c_string(chr(i)) == f'"{chr(i)}"'}
    assert letters == {chr(i) for i in range(32, 127)} - set('"?\\')
    assert c_string("\x7f\x1f~ ") == '"\\177\\037~ "'


def test_a_run_that_cannot_fail_has_no_descriptions():
    assert not [*error_text("m", {})]


def test_memory_of_the_caller_has_a_begin_and_places_of_the_state():
    program = counter()
    layout = caller_layout(program.interface, program.arena_nbytes)
    text = header(program, layout, facts())
    assert int(defines(text)["M_MEMORY_BYTES"]) == layout.nbytes
    assert int(defines(text)["M_STATE_MEAN_AT"]) == layout.start_of("state:mean")
    assert "int m_begin(void *memory);" in text and "extern float" not in text
    assert parameters(program.interface, layout).startswith("void *memory, const float x[300]")


def test_threads_are_the_last_parameter():
    program = counter()
    assert parameters(program.interface, static_layout(), True).endswith("float some[3], cg_parallel parallel")
    text = header(program, static_layout(), facts(has_threads=True))
    assert "typedef void (*cg_parallel)" in text and "NULL is none." in text


def test_no_text_ends_a_comment():
    assert comment("a */ b /* c\nd") == "a * / b / * c d"
    for text in ("/*/", "*/*", "**//"):
        assert "*/" not in comment(text) and "/*" not in comment(text)


def test_the_example_calls_the_run_with_names_that_it_does_not_use_itself():
    text = example(counter(("i", "error")), static_layout())
    assert "static float i_[300];" in text and "static int32_t error_[3];" in text
    assert "int error = m_run(i_, error_, total, some);" in text
    assert "i_[i] = (float)(i % 7);" in text and "for (size_t i = 0; i < 3; i++) printf" in text
    program = counter()
    interface = program.interface
    for count, shown in ((1, 1), (7, 7), (8, 8), (9, 8)):
        outputs = tuple(replace(x, spec=Spec((count,), x.spec.dtype)) for x in interface.outputs)
        text = example(replace(program, interface=replace(interface, outputs=outputs)), static_layout())
        assert f"for (size_t i = 0; i < {shown}; i++) printf" in text, "the first numbers of an output"
    text = example(program, caller_layout(program.interface, program.arena_nbytes), True)
    assert "m_run(memory, x, at, total, some, NULL)" in text and "if (m_begin(memory)) return 1;" in text
    assert "M_MEMORY_BYTES + 63" in text


def test_a_run_without_values_takes_nothing_and_names_of_an_example_are_distinct():
    nothing = Interface("m", (), (), ())
    assert parameters(nothing, static_layout()) == "void"
    assert parameters(nothing, static_layout(), True) == "cg_parallel parallel"
    assert parameters(nothing, caller_layout(nothing, 64)) == "void *memory"
    text = example(counter(("i", "i_")), static_layout())
    first, second = re.findall(r"static (?:float|int32_t) (i\w+)\[(?:300|3)\];", text)[:2]
    assert first != second and "i" not in (first, second) and f"m_run({first}, {second}, total, some)" in text


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("memory", ["static", "caller"])
def test_several_runs_share_one_arena_and_each_has_its_own_sizes(count, memory):
    """The largest arena; stacks that are known; errors of all; an example that runs one after another."""
    one = counter()
    programs = [replace(one, suffix=f"_{i}", arena_nbytes=one.arena_nbytes + 64 * (i % 2)) for i in range(count)]
    if count == 1:
        programs = [one]
    largest = max(x.arena_nbytes for x in programs)
    layout = static_layout() if memory == "static" else caller_layout(one.interface, largest)
    known = facts(stacks={"m_run_0": 40, "m_run_1": None, "m_run_2": 80})
    text = header_of_all(programs, layout, known)
    sizes = defines(text)
    assert int(sizes["M_ARENA_BYTES"]) == largest
    assert ("the largest memory plan's" in text) is (count > 1) and ("one run at a time" in text) is (count > 1)
    if count > 1:
        assert [int(sizes[f"M_{i}_ARENA_BYTES"]) for i in range(count)] == [x.arena_nbytes for x in programs]
        assert [sizes.get(f"M_{i}_STACK_BYTES") for i in range(count)] == ["40", None, "80"][:count]
        assert [sizes[f"M_{i}_INPUT_X_BYTES"] for i in range(count)] == ["1200"] * count
        assert all(f"int m_run_{i}({parameters(one.interface, layout)});" in text for i in range(count))
    assert text.count("m_error(int error)") == 1 and text.count("extern float m_mean") == (memory == "static")
    for has_threads in (False, True):
        shown = example_of_all(programs, layout, has_threads)
        calls = re.findall(r"int error = (m_run\w*)\((.*)\);", shown)
        assert [name for name, _ in calls] == [x.run_name for x in programs]
        for _, arguments in calls:
            parts = arguments.split(", ")
            assert (parts[0] == "memory") is (memory == "caller") and (parts[-1] == "NULL") is has_threads
        bodies = re.findall(r"if \(!error\) error = run_(\d)\((\w*)\);", shown)
        passed = "memory" if memory == "caller" else ""
        assert bodies == ([(str(i), passed) for i in range(count)] if count > 1 else [])
        assert shown.count("m_begin(memory)") == (memory == "caller") and shown.count("int main(void)") == 1
        assert shown.count("static float x[300];") == count
