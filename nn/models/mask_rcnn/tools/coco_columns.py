"""Pictures and objects of a data set, kept as columns: Python objects would take ten times the bytes of their text.

An object's row stays JSON text, which is parsed when its box or its segmentation is read.
"""

import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np

from cgraph import FormatError
from cgraph.formats.allowance import Allowance

Object = tuple[int, list[float], Any]  # class, box as corner and size, and segmentation, as in the file

ID, PICTURE, OBJECT = 200, 40, 40  # bytes of an id in a dictionary, and of a row of each kind, beside its text


class Entry(NamedTuple):
    """A picture: its file, size and objects."""

    path: Path
    rows: int
    columns: int
    objects: Sequence[Object]


class Segmentations(Sequence[Any]):
    """The segmentations of objects: one is parsed and in memory at a time."""

    def __init__(self, objects: Sequence[Object]) -> None:
        self.objects = objects

    def __len__(self) -> int:
        return len(self.objects)

    def __getitem__(self, number: Any) -> Any:
        return self.objects[number][2]


class Texts:
    """Many texts, one after the other. Changes: `append` adds one."""

    def __init__(self) -> None:
        self.letters, self.ends = bytearray(), array("q", [0])

    def append(self, text: str) -> None:
        self.letters += text.encode()
        self.ends.append(len(self.letters))

    def __getitem__(self, number: int) -> str:
        return self.letters[self.ends[number] : self.ends[number + 1]].decode()


class Ids:
    """Numbers of ids, in the order of their first use. Changes: `number` adds an id.

    The keys are texts: the hashes of integers can be chosen to collide, those of texts cannot.
    """

    def __init__(self, allowance: Allowance) -> None:
        self.numbers: dict[str, int] = {}
        self.allowance = allowance

    def number(self, key: str) -> int:
        """Return the number of an id."""
        if key not in self.numbers:
            self.allowance.spend("ids", nbytes=ID + len(key))
        return self.numbers.setdefault(key, len(self.numbers))

    def places(self, rows: array, what: str) -> np.ndarray:
        """Return which row describes each id, -1 for none. FormatError if two rows describe one id.

        Parameters
            rows: the number of the id that each row describes
        """
        places = np.full(len(self.numbers), -1)
        places[rows] = np.arange(len(rows))
        if np.count_nonzero(places >= 0) != len(rows):
            raise FormatError(f"two rows of {what!r} have the same id. Remove one.")
        return places


class ObjectColumns:
    """All pictures and objects of a file. Changes while the file is read.

    Fields
        names, sizes, picture_ids: of the pictures: their files, rows and columns, numbers of their ids
        texts, kinds, owners: of the objects: their rows, numbers of the ids of their classes and pictures
    """

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.names, self.texts = Texts(), Texts()
        self.sizes, self.picture_ids, self.kinds, self.owners = array("q"), array("q"), array("q"), array("q")
        self.kind_ids, self.ids = Ids(allowance), Ids(allowance)

    def add_picture(self, key: str, name: str, rows: int, columns: int) -> None:
        self.allowance.spend("pictures", nbytes=PICTURE + len(name.encode()))
        self.picture_ids.append(self.ids.number(key))
        self.names.append(name)
        self.sizes.extend((rows, columns))

    def add_object(self, key: str, kind: str, text: str) -> None:
        self.allowance.spend("objects", nbytes=OBJECT + len(text))
        self.owners.append(self.ids.number(key))
        self.kinds.append(self.kind_ids.number(kind))
        self.texts.append(text)


class Objects(Sequence[Object]):
    """The objects of one picture, in the order of the file."""

    def __init__(self, columns: ObjectColumns, classes: np.ndarray, rows: np.ndarray) -> None:
        self.columns, self.classes, self.rows = columns, classes, rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, number: int) -> Object: ...

    @overload
    def __getitem__(self, number: slice) -> list[Object]: ...

    def __getitem__(self, number: int | slice) -> Object | list[Object]:
        if isinstance(number, slice):
            return [self[i] for i in range(len(self))[number]]
        i = self.rows[number]
        row = json.loads(self.columns.texts[i])
        return int(self.classes[i]), [float(v) for v in row["bbox"]], row["segmentation"]


class Entries(Sequence[Entry]):
    """The pictures of a data set, in the order of the file.

    Parameters
        folder: folder of the pictures
        kinds: numbers of the ids of the classes, in their order
    """

    def __init__(self, columns: ObjectColumns, folder: Path, kinds: array) -> None:
        self.columns, self.folder = columns, folder
        places = columns.ids.places(columns.picture_ids, "images")
        self.classes = described(columns.kind_ids.places(kinds, "categories"), columns.kinds, "category_id") + 1
        owners = described(places, columns.owners, "image_id")
        self.order = np.argsort(owners, kind="stable")  # objects by their pictures
        self.ends = np.cumsum([0, *np.bincount(owners, minlength=len(columns.picture_ids))])

    def __len__(self) -> int:
        return len(self.columns.picture_ids)

    @overload
    def __getitem__(self, number: int) -> Entry: ...

    @overload
    def __getitem__(self, number: slice) -> list[Entry]: ...

    def __getitem__(self, number: int | slice) -> Entry | list[Entry]:
        if isinstance(number, slice):
            return [self[i] for i in range(len(self))[number]]
        i = range(len(self))[number]
        rows, columns = self.columns.sizes[2 * i : 2 * i + 2]
        objects = Objects(self.columns, self.classes, self.order[self.ends[i] : self.ends[i + 1]])
        return Entry(self.folder / self.columns.names[i], rows, columns, objects)


def described(places: np.ndarray, numbers: array, what: str) -> np.ndarray:
    """Return the rows that describe the ids of objects. FormatError if none does."""
    rows = places[numbers]
    if rows.size and rows.min() < 0:
        count = np.count_nonzero(rows < 0)
        raise FormatError(f"{count} objects have a {what} that the file does not describe. Remove them.")
    return rows
