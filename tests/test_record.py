"""A record is a frozen dataclass to whoever reads, calls or compares it."""

import importlib
import inspect
import pkgutil
from contextlib import suppress
from dataclasses import Field, field
from typing import ClassVar

import pytest

import cgraph
import nn
from cgraph.record import Record, replace


class Point(Record):
    x: int
    y: int = 2
    unit: ClassVar[str] = "m"


class Labelled(Point):
    label: str = ""
    seen: list = field(default_factory=list)


class Own(Record, eq=False):
    x: int


class OwnToo(Own):
    y: int = 0


class Square(Record):
    unit: "ClassVar[str]" = "m"
    side: "float"
    area: "float" = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "area", self.side * self.side)


class Positive(Record):
    x: float

    def __post_init__(self):
        if self.x <= 0:
            raise ValueError("not positive")


def test_values_by_position_by_name_and_by_default_are_the_same():
    assert Point(1) == Point(1, 2) == Point(y=2, x=1) == Point(1, y=2)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert Point(1) != Point(2) and Point(1) != (1, 2)


def test_a_subclass_keeps_its_parents_fields_and_is_never_equal_to_it():
    assert (Labelled(1).x, Labelled(1).y, Labelled(1, label="a").label) == (1, 2, "a")
    assert Labelled(1) != Point(1, 2)


def test_a_factory_makes_a_default_for_each():
    assert Labelled(1).seen == [] and Labelled(1).seen is not Labelled(1).seen


@pytest.mark.parametrize("record", [Own, OwnToo])
def test_without_equality_each_is_equal_to_itself_alone(record):
    one = record(1)
    assert one == one and one != record(1) and len({one, one, record(1)}) == 2


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((), {"y": 1}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1, 2), {"y": 2}), ((1,), {"z": 1}), ((), {"z": 1})],
)
def test_values_that_do_not_fit_the_fields_are_a_type_error(values, named):
    with pytest.raises(TypeError, match=r"Point\(x, y\)"):
        Point(*values, **named)


def test_nothing_can_be_set_or_deleted():
    point = Point(1)
    with pytest.raises(AttributeError, match="Point.x"):
        point.x = 2
    with pytest.raises(AttributeError, match="Point.z"):
        point.z = 2
    with pytest.raises(AttributeError, match="Point.x"):
        del point.x
    assert point == Point(1)


def test_replace_makes_another_with_the_same_checks():
    assert replace(Point(1), y=5) == Point(1, 5)
    assert replace(Labelled(1, label="a"), x=3) == Labelled(3, 2, "a", [])
    with pytest.raises(TypeError, match="z"):
        replace(Point(1), z=5)
    with pytest.raises(ValueError, match="positive"):
        replace(Positive(1.0), x=-1.0)


def test_a_field_that_is_computed_is_not_given_nor_compared():
    assert Square(2.0).area == 4.0 and Square(side=2.0) == Square(2.0)
    with pytest.raises(TypeError, match=r"Square\(side\)"):
        Square(2.0, 4.0)


def test_it_is_written_as_it_is_made():
    assert repr(Labelled(1, label="a")) == "Labelled(x=1, y=2, label='a', seen=[])"


def test_every_default_of_every_record_is_a_value_or_is_made_by_a_factory():
    """A record does not unpack ``field(default=...)``."""
    for package in (cgraph, nn):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(("__main__", "mypy_plugin")):
                with suppress(ImportError):  # of an optional package
                    importlib.import_module(module.name)
    waiting, count = [Record], 0
    while waiting:
        subclasses = waiting.pop().__subclasses__()
        waiting += subclasses
        for each in subclasses:
            count += 1
            for name, default in each._defaults.items():
                assert not isinstance(default, Field) or callable(default.default_factory), f"{each}.{name}"
    assert count > 100


class Late(Point):
    z: int


class Made(Record):
    x: int
    y: int

    def __init__(self, both: int = 3) -> None:
        super().__init__(both, both)


def test_a_class_has_its_fields_as_its_signature():
    for record, text in (
        (Point, "(x: int, y: int = 2) -> None"),
        (Labelled, "(x: int, y: int = 2, label: str = '', seen: list = []) -> None"),
        (Late, "(x: int, y: int = 2, *, z: int) -> None"),
        (Own, "(x: int) -> None"),
        (Made, "(both: int = 3) -> None"),
    ):
        assert str(inspect.signature(record)) == text
    with pytest.raises(AttributeError, match="a record has no signature; its class has one"):
        _ = Point(1).__signature__


def test_a_field_without_a_default_behind_one_that_has_one_is_passed_by_name_or_place():
    assert Late(1, z=3) == Late(1, 2, 3) == Late(z=3, x=1) and Late(1, z=3).y == 2
    with pytest.raises(TypeError, match=r"Late\(x, y, z\) needs z"):
        Late(1)
    assert (Made(), Made(4)) == (Made(3), Made(both=4)) and Made(4).y == 4


def test_each_field_counts_for_equality_and_hash():
    base = Labelled(1, 2, "a", ())
    others = [Labelled(9, 2, "a", ()), Labelled(1, 9, "a", ()), Labelled(1, 2, "b", ()), Labelled(1, 2, "a", (1,))]
    assert base == Labelled(1, 2, "a", ()) and len({base, Labelled(1, 2, "a", ()), *others}) == 5
    assert not [x for x in others if x == base]


def test_a_signature_has_the_annotation_of_the_last_class_that_declares_a_field():
    class First(Record):
        x: int
        y: str = "y"

    class Second(First):
        x: float

    class Third(Second):
        y: bytes = b""

    kinds = [
        {name: p.annotation for name, p in inspect.signature(cls).parameters.items()} for cls in (First, Second, Third)
    ]
    assert kinds == [{"x": int, "y": str}, {"x": float, "y": str}, {"x": float, "y": bytes}]
    assert (
        list(inspect.signature(Third).parameters) == ["x", "y"]
        and inspect.signature(Third).parameters["y"].default == b""
    )
