"""Heaps of HDF5 files: whole ones pass, wherever they lie; damaged ones are refused before the library loops."""

import json
import os
from itertools import pairwise

import pytest

from cgraph.errors import FormatError
from cgraph.formats import hdf5_heaps
from cgraph.formats.hdf5_heaps import HEAD, SIGNATURE, check_heaps
from cgraph.formats.keras_apart import read_keras_apart
from cgraph.formats.keras_h5 import read_keras

h5py = pytest.importorskip("h5py")

TEXTS = [json.dumps({"class_name": "x" * n}) for n in (1, 3_000, 900, 20_000)]  # in heaps of several objects, and alone


@pytest.fixture
def whole(tmp_path):
    """A file with several heaps: the library begins one whenever it has opened the file."""
    path = tmp_path / "x.h5"
    for i, text in enumerate(TEXTS):
        with h5py.File(path, "a") as file:
            file.attrs[f"other{i}"] = text
            file.attrs[f"more{i}"] = TEXTS[0]
    with h5py.File(path, "a") as file:
        file.attrs["model_config"] = TEXTS[1]
    return path.read_bytes()


def checked(path, contents):
    path.write_bytes(contents)
    fd = os.open(path, os.O_RDONLY)
    try:
        check_heaps(fd, len(contents))
    finally:
        os.close(fd)


def word(n):
    return (n % 2**64).to_bytes(8, "little")


def heaps_of(contents):
    """First byte and end of each heap."""
    starts = [i for i in range(len(contents)) if contents.startswith(SIGNATURE, i)]
    return [(i, i + int.from_bytes(contents[i + 8 : i + 16], "little")) for i in starts]


def objects_of(contents):
    """Places of all objects, with what is left of their heap."""
    found = []
    for at, end in heaps_of(contents):
        at += HEAD
        while end - at >= HEAD:
            size = int.from_bytes(contents[at + 8 : at + 16], "little")
            found.append((at, end - at))
            at += (HEAD if contents[at] else 0) + -(-size // 8) * 8
    return found


def heap(*objects, length=hdf5_heaps.LEAST):
    """A heap of these numbers and sizes."""
    body = b"".join(
        number.to_bytes(8, "little") + word(size) + bytes(max(-(-size // 8) * 8 - (0 if number else HEAD), 0))
        for number, size in objects
    )
    return (SIGNATURE + bytes(3) + word(length) + body).ljust(length, b"\1")


def test_what_the_library_wrote_passes(whole, tmp_path):
    assert len(heaps_of(whole)) > 1 and len(objects_of(whole)) > len(TEXTS)
    checked(tmp_path / "x.h5", whole)
    assert read_keras(tmp_path / "x.h5").config == json.loads(TEXTS[1])


@pytest.mark.parametrize("piece", [5, 7, 64])
def test_heaps_are_found_wherever_pieces_end(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(hdf5_heaps, "PIECE", piece)
    monkeypatch.setattr(hdf5_heaps, "LEAST", 48)
    for before in range(2 * piece):
        checked(tmp_path / "x", bytes(before) + heap((0, 32), length=48) * 2)
        with pytest.raises(FormatError, match=f"at byte {before + 48 + HEAD} has 0 bytes"):
            checked(tmp_path / "x", bytes(before) + heap((0, 32), length=48) + heap((0, 0), length=48))


def test_every_size_of_an_object_that_keeps_the_library_or_leads_it_away_is_refused(whole, tmp_path):
    for at, left in objects_of(whole):
        wrong = [2**64 - n for n in (1, 7, 8, 9, 16, 17, 24, 40)] + [2**63, left + 1, 2**32, 2**64 - left]
        if not any(whole[at : at + 2]):  # its size counts its head
            wrong += [0, 1, 8, HEAD - 1]
        for size in wrong:
            with pytest.raises(FormatError, match=f"{size} bytes, {left} are left of its heap"):
                checked(tmp_path / "x", whole[: at + 8] + word(size) + whole[at + 16 :])


def test_an_object_of_no_bytes_that_has_a_number_is_fine(tmp_path):
    room = hdf5_heaps.LEAST - HEAD
    for objects in ([(1, 0), (0, room - 16)], [(1, room - 16)], [(1, room - 24)], [(2, 1), (1, room - 48), (3, 0)]):
        checked(tmp_path / "x", heap(*objects))


@pytest.mark.parametrize("length", [0, hdf5_heaps.LEAST - 1, 2 * hdf5_heaps.LEAST + 1, 2**63])
def test_numbers_that_look_like_a_heap_are_none(tmp_path, length):
    """A shorter or longer one is refused by the library itself, if it ever looks."""
    looks = (SIGNATURE + bytes(3) + word(length)).ljust(2 * hdf5_heaps.LEAST, b"\0")
    checked(tmp_path / "x", looks)


def test_heaps_in_heaps_take_time_in_proportion(tmp_path, monkeypatch):
    """A heap in each object of another one: all have the same end, so each would be walked to there."""
    inner = b"".join(word(1) + word(HEAD) + SIGNATURE + bytes(3) + word(32 * (2000 - i) - HEAD) for i in range(2000))
    looks = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda *where: looks.append(where) or pread(*where))
    with pytest.raises(FormatError, match="heaps overlap"):
        checked(tmp_path / "x", SIGNATURE + bytes(3) + word(len(inner) + HEAD) + inner)
    assert len(looks) < len(inner) / 4


def test_a_damaged_heap_is_refused_before_the_library_reads_it(whole, tmp_path):
    """In a child with a limit, which would end a loop."""
    _, end = heaps_of(whole)[-1]
    at, _ = objects_of(whole)[-2]
    (tmp_path / "x.h5").write_bytes(whole[:at] + whole[at + 8 : end] + bytes(8) + whole[end:])
    with pytest.raises(FormatError, match="left of its heap"):
        read_keras_apart(tmp_path / "x.h5")


def test_places_and_lengths_of_other_sizes_are_refused(tmp_path):
    """Keras writes none, and heads of objects have another size then."""
    for sizes in [(4, 4), (8, 4), (4, 8)]:
        settings = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        settings.set_sizes(*sizes)
        name = str(tmp_path / f"{sizes}.h5")
        with h5py.File(h5py.h5f.create(name.encode(), fcpl=settings)) as file:
            file.attrs["model_config"] = "{}"
        with pytest.raises(FormatError, match="do not have 8 bytes"):
            read_keras(name)


def test_places_come_in_order(tmp_path):
    contents = SIGNATURE * 3 + b"GC" + SIGNATURE
    (tmp_path / "x").write_bytes(contents)
    fd = os.open(tmp_path / "x", os.O_RDONLY)
    try:
        found = list(hdf5_heaps.places(fd, SIGNATURE))
    finally:
        os.close(fd)
    assert found == [0, 5, 10, 17] and all(a < b for a, b in pairwise(found))


@pytest.mark.parametrize("left", [0, 8, 15, 16, 24])
def test_what_is_left_of_a_heap_is_an_object_if_it_has_room_for_a_head(tmp_path, left):
    """Of zeros, which would be free space of no bytes."""
    raw = bytearray(heap((1, hdf5_heaps.LEAST - 2 * HEAD - left)))
    raw[len(raw) - left :] = bytes(left)
    if left < HEAD:
        checked(tmp_path / "x", bytes(raw))
        return
    at = len(raw) - -(-left // 8) * 8
    with pytest.raises(FormatError, match=f"an object at byte {at} has 0 bytes, {len(raw) - at} are left of its heap"):
        checked(tmp_path / "x", bytes(raw))
    for number, size in ((0, len(raw) - at), (1, len(raw) - at - HEAD)):
        raw[at : at + HEAD] = number.to_bytes(8, "little") + word(size)
        checked(tmp_path / "x", bytes(raw))


def test_a_file_has_as_many_objects_as_heads_fit_into_it(tmp_path, monkeypatch):
    """One more than that is refused: heaps must overlap then."""
    raw = heap(*[(1, 0)] * (hdf5_heaps.LEAST // HEAD - 1))
    checked(tmp_path / "x", raw)
    (tmp_path / "x").write_bytes(raw)
    with open(tmp_path / "x", "rb") as file:
        count = hdf5_heaps.LEAST // HEAD - 1
        assert hdf5_heaps.objects(file.fileno(), HEAD, hdf5_heaps.LEAST, count) == count
        with pytest.raises(FormatError, match=f"more than {count - 1} objects from byte {hdf5_heaps.LEAST - HEAD} on"):
            hdf5_heaps.objects(file.fileno(), HEAD, hdf5_heaps.LEAST, count - 1)
        assert hdf5_heaps.objects(file.fileno(), HEAD, HEAD + 15, 0) == 0
