"""Record: a frozen value, written as a class whose annotated names are its fields.

    class Window(Record):
        size: tuple[int, int]
        stride: int = 1

    Window((3, 3)) == Window(size=(3, 3), stride=1)

The same as a frozen dataclass to whoever reads, calls or type-checks it. The difference is when modules are imported:
`dataclasses` writes each class's methods as text and compiles that, about 0.7 ms a class, which was more than half of
``import cgraph``. Here all classes have the same methods, and those read the names of the fields.
"""

from dataclasses import Field, field
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, dataclass_transform

AnyRecord = TypeVar("AnyRecord", bound="Record")
set_field = object.__setattr__  # past a record's own, which refuses


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """A frozen value: equal to another of its class with equal fields, and hashed by them.

    A subclass keeps its parent's fields and adds its own; ``class Name(Record, eq=False)`` is equal to itself alone. A
    name annotated as ClassVar is no field. ``field(default_factory=...)`` makes a default for each record;
    ``field(init=False)`` declares what `__post_init__` sets, which may also refuse the values.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}
    _compared: ClassVar[Any]
    """The class and the fields' values: what equality and hash go by."""

    def __init_subclass__(cls, eq: bool = True) -> None:
        own = [name for name, kind in cls.__annotations__.items() if is_field(kind, vars(cls).get(name))]
        cls._fields = tuple(dict.fromkeys((*cls._fields, *own)))
        cls._defaults = {name: getattr(cls, name) for name in cls._fields if hasattr(cls, name)}
        cls._compared = attrgetter("__class__", *cls._fields)
        if not eq:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign, assignment]

    def __init__(self, *values: Any, **named: Any) -> None:
        if named or len(values) != len(self._fields):
            values = complete_values(type(self), values, named)
        for name, value in zip(self._fields, values):
            set_field(self, name, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Nothing to refuse."""

    def __eq__(self, other: object) -> bool:
        return self._compared(self) == other._compared(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._compared(self))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: a record is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted: a record is frozen")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"


def replace(record: AnyRecord, **changes: Any) -> AnyRecord:
    """The same record with other values for some fields."""
    values = [changes.pop(name) if name in changes else getattr(record, name) for name in record._fields]
    return type(record)(*values, **changes)


def is_field(kind: Any, default: Any) -> bool:
    """Whether a name annotated as `kind`, which may be text, is a value that the record is made of."""
    return "ClassVar[" not in str(kind) and (not isinstance(default, Field) or default.init)


def complete_values(cls: type[Record], values: tuple, named: dict[str, Any]) -> tuple:
    """The values of all fields in their order, defaults among them; uses up `named`.

    Raises
        TypeError: no value for a field without default, or one for no field or for a field that has one
    """
    complete = list(values)
    for name in cls._fields[len(values) :]:
        if name not in named and name not in cls._defaults:
            raise TypeError(f"{cls.__name__}({', '.join(cls._fields)}) needs {name}")
        x = named.pop(name) if name in named else cls._defaults[name]
        complete.append(x.default_factory() if isinstance(x, Field) else x)  # type: ignore[operator]
    if named or len(values) > len(cls._fields):
        extra = ", ".join(named) or f"{len(values)} values"
        raise TypeError(f"{cls.__name__}({', '.join(cls._fields)}) does not take {extra}")
    return tuple(complete)
