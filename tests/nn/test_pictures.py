"""Folders of pictures: a class for each folder, decoded batch by batch."""

from pathlib import Path

import numpy as np
import pytest

import nn
from cgraph import FormatError, InputError
from tests.support.tolerance import assert_near

COLOURS = {"blue": (0, 0, 255), "green": (0, 255, 0), "red": (255, 0, 0)}


@pytest.fixture
def folder(tmp_path):
    """Three classes of 4 PNG files of one colour and several sizes; other files and an empty folder beside them."""
    image = pytest.importorskip("PIL.Image")
    for name, colour in COLOURS.items():
        (tmp_path / name / "more").mkdir(parents=True)
        for i in range(4):
            place = tmp_path / name / "more" if i == 3 else tmp_path / name
            image.new("RGB", (8 + i, 5), colour).save(place / f"{i}.PNG", format="PNG")
        (tmp_path / name / "notes.txt").write_text("no picture")
    (tmp_path / "empty").mkdir()
    (tmp_path / "list.txt").write_text("no folder")
    return tmp_path


def test_each_folder_is_a_class_and_each_picture_has_one_size(folder):
    pictures, classes, names = nn.picture_folder(folder, 6, 4)
    assert names == ("blue", "green", "red") and classes.dtype == np.int32
    assert classes.tolist() == [0] * 4 + [1] * 4 + [2] * 4 and len(pictures) == 12
    values = pictures.read(np.array([5, 0, 11]))
    assert values.shape == (3, 3, 6, 4) and values.dtype == np.float32
    for value, name in zip(values, ("green", "blue", "red")):
        assert_near(value, np.broadcast_to(np.float32(COLOURS[name])[:, None, None] / 255, (3, 6, 4)), "float32")


def test_a_network_is_trained_on_a_folder(folder):
    pictures, classes, _ = nn.picture_folder(folder, 4, 4)
    model = nn.initialise(nn.Sequential(nn.Input((3, 4, 4)), nn.Flatten(), nn.Linear(48, 3)), 0)
    history = nn.train(
        model, nn.Loader((pictures, classes), 4, prefetch=2), epochs=20, progress=False,
        optimiser=nn.Optimiser(rate=nn.optim.Const(0.05)),
    )  # fmt: skip
    assert history.loss[-1] < history.loss[0] / 4
    assert (nn.compile(model)(pictures.read(np.arange(12))).argmax(1) == classes).all()


def test_pictures_that_cannot_be_read_are_refused_by_name(folder):
    (folder / "red" / "broken.png").write_bytes(b"no picture")
    pictures, _, _ = nn.picture_folder(folder, 4, 4)
    with pytest.raises(FormatError, match="broken.png"):
        pictures.read(np.arange(len(pictures)))
    with pytest.raises(InputError, match="has no folder of pictures"):
        nn.picture_folder(folder / "empty", 4, 4)
    with pytest.raises(InputError, match="rows is 0"):
        nn.picture_folder(folder, 0, 4)


def test_pictures_and_classes_are_in_the_order_of_their_names_without_folders(folder, monkeypatch):
    """In any order in which the system lists them."""
    (folder / "red" / "folder.png").mkdir()
    for name in ("rglob", "iterdir"):
        plain = getattr(Path, name)
        monkeypatch.setattr(Path, name, lambda path, *args, plain=plain: sorted(plain(path, *args), reverse=True))
    pictures, classes, names = nn.picture_folder(folder, 4, 4)
    assert names == ("blue", "green", "red") and len(classes) == 12
    assert [str(x.relative_to(folder)) for x in pictures.paths] == [
        f"{name}/{part}.PNG" for name in names for part in ("0", "1", "2", "more/3")
    ]
