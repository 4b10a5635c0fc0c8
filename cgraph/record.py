"""Record: a frozen value, written as a class whose annotated names are its fields.

    class Window(Record):
        size: tuple[int, int]
        stride: int = 1

    Window((3, 3)) == Window(size=(3, 3), stride=1)

A Record reads, behaves and type-checks as a frozen dataclass, but is faster to define. `dataclasses` compiles methods
for each class from text, about 0.7 ms each, which was more than half of ``import cgraph``. All Records share the same
methods, which read the names of the fields.
"""

from dataclasses import Field, field
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

AnyRecord = TypeVar("AnyRecord", bound="Record")
set_field = object.__setattr__  # bypasses Record.__setattr__, which raises


class RecordSignature:
    """The signature of a class of records, as ``help`` and `inspect.signature` show it: its fields."""

    def __get__(self, record: Any, cls: type["Record"]) -> Any:
        """Return the signature of a class. AttributeError for a record, which is not its class."""
        if record is not None:
            raise AttributeError("a record has no signature; its class has one")
        from inspect import Parameter, Signature, signature

        if cls.__init__ is not Record.__init__:
            own = list(signature(cls.__init__).parameters.values())[1:]
            return Signature(own, return_annotation=None)
        bases = [vars(base).get("__annotations__", {}) for base in reversed(cls.__mro__)]
        kinds = {name: kind for names in bases for name, kind in names.items()}
        parameters: list[Parameter] = []
        is_optional, kind = False, cast(Any, Parameter.POSITIONAL_OR_KEYWORD)
        for name in cls._fields:
            default = shown_default(cls._defaults[name]) if name in cls._defaults else Parameter.empty
            if is_optional and default is Parameter.empty:  # a subclass adds it after a parent's default
                kind = Parameter.KEYWORD_ONLY
            is_optional = is_optional or default is not Parameter.empty
            parameters.append(Parameter(name, kind, default=default, annotation=kinds[name]))
        return Signature(parameters, return_annotation=None)


def shown_default(default: Any) -> Any:
    """Return a default as a signature shows it; one that is made for each record, as an empty value of its kind."""
    return default.default_factory() if isinstance(default, Field) else default  # type: ignore[operator, misc]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """A frozen value: equal to another of its class with equal fields, and hashed by them.

    A subclass has its parent's fields and its own; one declared as ``class Name(Record, eq=False)`` is equal only to
    itself. A name annotated as ClassVar is not a field. ``field(default_factory=...)`` creates a default for each
    record; ``field(init=False)`` declares a field that `__post_init__` sets. `__post_init__` may also reject values.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}
    __signature__: ClassVar[Any] = RecordSignature()
    _compared: ClassVar[Any]
    """The class and the fields' values, which equality and hash compare."""

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
        """Check the values; does nothing by default."""

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
    """Return the record with other values for some fields."""
    values = [changes.pop(name) if name in changes else getattr(record, name) for name in record._fields]
    return type(record)(*values, **changes)


def is_field(kind: Any, default: Any) -> bool:
    """Return True if a name annotated as `kind`, possibly text, is a field that the constructor takes."""
    return "ClassVar[" not in str(kind) and (not isinstance(default, Field) or default.init)


def complete_values(cls: type[Record], values: tuple, named: dict[str, Any]) -> tuple:
    """Return the values of all fields in order, including defaults. Empties `named`.

    Raises
        TypeError: a field without default has no value, or a value has no field or a second one
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
