import json

import pytest

from cgraph.errors import FormatError
from cgraph.memory import files
from cgraph.memory.files import plan_text, read_problem, write_plan
from cgraph.memory.problem import Plan, UsageInterval
from cgraph.memory.strategies.greedy_by_size import greedy_by_size


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "records.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_usage_records_are_read(write):
    problem = read_problem(write("id,first_op,last_op,size_bytes,name\n0,0,1,64,conv\n\n1,1,2,0,\n"), alignment=16)
    assert [(x.nbytes, x.interval, x.name) for x in problem.operands] == [
        (64, UsageInterval(0, 1), "conv"),
        (0, UsageInterval(1, 2), "1"),
    ]
    assert problem.alignment == 16


def test_the_upper_end_of_minimalloc_is_not_included(write):
    problem = read_problem(write("id,lower,upper,size\r\nb1,3,7,64\r\n"))
    assert problem.operands[0].interval == UsageInterval(3, 6)
    assert problem.operands[0].name == "b1"
    assert problem.alignment == 1


def test_columns_may_stand_in_any_order_and_more_may_follow(write):
    problem = read_problem(write("\ufeffsize, id, upper, lower, color\n64,0,7,3,red\n"))
    assert problem.operands[0].interval == UsageInterval(3, 6)


HEADER = "id,lower,upper,size\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", ":1: the header is ''"),
        ("a,b\n1,2\n", ":1: the header is 'a,b'. Write id,first_op"),
        (HEADER + "0,1,2\n", ":2: 3 values for 4 columns"),
        (HEADER + "0,1,2,3,4\n", ":2: 5 values for 4 columns"),
        (HEADER + "0,0,1,8\n1,0,1,x\n", ":3: size is 'x'. Write an integer"),
        (HEADER + "0,0,1,-8\n", ":2: size is '-8'. Write an integer"),
        (HEADER + "0,0,1,1.5\n", ":2: size is '1.5'"),
        (HEADER + "0,0,1,\n", ":2: size is ''"),
        (HEADER + "0,0,1,٣\n", ":2: size is '٣'"),
        (HEADER + "0,5,5,8\n", ":2: upper 5 leaves no step from lower 5 on"),
        (HEADER + "0,5,0,8\n", ":2: upper 0 leaves no step"),
        (HEADER + "0,0,1,8\n\n0,1,2,8\n", ":4: id '0' is already in line 2"),
        (HEADER + "0,0,1," + "9" * 5000 + "\n", ":2: size is 999999999999999999999999. Write at most"),
        (HEADER + "0,0,99999999999999999999,8\n", ":2: upper is 99999999999999999999. Write at most"),
        (HEADER + '0,0,1,"8\n', ":2: unexpected end of data"),
        (b"id,lower,upper,size\n\xff,0,1,8\n", "not a text file"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(write, text, complaint):
    path = write(text)
    with pytest.raises(FormatError) as refused:
        read_problem(path)
    assert str(refused.value).startswith(f"{path}:")
    assert complaint in str(refused.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FormatError, match=r"absent.csv: No such file"):
        read_problem(tmp_path / "absent.csv")


def test_a_written_plan_holds_every_operand(write, tmp_path):
    problem = read_problem(write(HEADER + "0,0,2,64\n1,1,3,32\n"))
    write_plan(tmp_path / "plan.json", problem, greedy_by_size(problem))
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["nbytes"] == plan["lower_bound"] == 96
    assert plan["operands"][1] == {"name": "1", "first": 1, "last": 2, "nbytes": 32, "offset": 64}


def test_a_row_over_several_lines_is_read(write):
    problem = read_problem(write('id,first_op,last_op,size_bytes,name\n0,0,1,64,"two\nlines"\n'))
    assert problem.operands[0].name == "two\nlines"


TOO_MUCH = {
    "many cells": HEADER + "1," * 100_000,
    "many cells over many lines": HEADER + '"1\n",1,' * 100_000,
    "many letters": HEADER + "a" * 100_000 + ",0,1,8\n",
    "many names of columns": "a," * 100_000 + HEADER,
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_row_without_end_is_refused(write, name):
    with pytest.raises(FormatError, match="a row has more than 65,536 letters"):
        read_problem(write(TOO_MUCH[name]))


def test_more_rows_than_a_file_may_cost_are_refused(write, monkeypatch):
    monkeypatch.setattr(files, "FREE", 3 * files.ROW)
    monkeypatch.setattr(files, "TIMES", 0)
    rows = [f"{i},0,1,8\n" for i in range(4)]
    assert len(read_problem(write(HEADER + "".join(rows[:3]))).operands) == 3
    with pytest.raises(FormatError, match=":5: it has more than the 3 rows"):
        read_problem(write(HEADER + "".join(rows)))


def test_two_columns_of_one_name_are_refused(write):
    with pytest.raises(FormatError, match=":1: two columns of 'id,lower,upper,size,size' have one name"):
        read_problem(write("id,lower,upper,size,size\n0,0,1,8,9\n"))


@pytest.mark.parametrize("regions", [[], [{"step": 3, "values": ["conv", "relu"]}]])
@pytest.mark.parametrize("proved", [False, True])
def test_the_text_of_a_plan_has_each_fact_and_regions_only_where_there_are_some(write, regions, proved):
    problem = read_problem(write("id,lower,upper,size\na,0,3,100\nb,1,4,50\n"), alignment=64)
    plan = Plan((64, 0), 192, "mine", proved)
    facts = {
        "strategy": "mine", "nbytes": 192, "lower_bound": 192, "proved": proved, "alignment": 64,
        "operands": [
            {"name": "a", "first": 0, "last": 2, "nbytes": 100, "offset": 64},
            {"name": "b", "first": 1, "last": 3, "nbytes": 50, "offset": 0},
        ],
    }  # fmt: skip
    text = plan_text(problem, plan, regions, steps=["x"], order="eager")
    assert json.loads(text) == facts | ({"regions": regions} if regions else {}) | {"steps": ["x"], "order": "eager"}
    assert text.endswith("}\n") and json.loads(plan_text(problem, plan)) == facts


MOST = 2**62


def test_numbers_up_to_the_largest_offset_are_read(write):
    (operand,) = read_problem(write(f"{HEADER}0,1,{MOST},{MOST}\n")).operands
    assert (operand.nbytes, operand.interval) == (MOST, UsageInterval(1, MOST - 1))
    for row in (f"0,1,{MOST + 1},8", f"0,1,2,{MOST + 1}", "0,1,2,9999999999999999999", f"0,{MOST + 1},{MOST + 2},8"):
        with pytest.raises(FormatError, match=f":2: [a-z]+ is [0-9]+. Write at most {MOST}"):
            read_problem(write(f"{HEADER}{row}\n"))


def test_a_row_has_up_to_65536_letters_and_a_file_any_number(write):
    header, name = "id,first_op,last_op,size_bytes,name\n", "n" * (65536 - len("0,0,1,8,\n"))
    rows = [f"{i},0,1,8,{name}\n" for i in range(3)]
    assert [x.name for x in read_problem(write(header + "".join(rows))).operands] == [name] * 3
    for line, before in ((2, ""), (4, rows[0] + rows[1])):
        with pytest.raises(FormatError, match=f":{line}: a row has more than 65,536 letters"):
            read_problem(write(f"{header}{before}9,0,1,8,{name}n\n"))


def test_the_limit_of_rows_grows_with_the_file(write):
    assert [files._most_rows(write("x" * n)) for n in (0, 1000)] == [(64 << 20) // 400, ((64 << 20) + 2000) // 400]


def test_a_written_plan_has_the_text_of_its_regions_and_facts(write, tmp_path):
    problem = read_problem(write(HEADER + "0,0,2,64\n"))
    arguments = problem, Plan((0,), 64, "mine"), [{"step": 3}]
    write_plan(tmp_path / "plan.json", *arguments, order="eager")
    assert (tmp_path / "plan.json").read_text() == plan_text(*arguments, order="eager")
