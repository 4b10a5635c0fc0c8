"""What descriptions of networks are refused for: each condition of a layer alone, and what just keeps to it."""

import pytest

from cgraph.errors import FormatError
from cgraph.formats import darknet

HALF = "[maxpool]\nsize=2\nstride=2\n"
NET = "[net]\nheight=6\nwidth=4\nchannels=4\n"
REFUSED = {
    "no number": ("[convolutional]\nfilters=two\n", "filters=two is not an integer"),
    "no float": ("[upsample]\nscale=two\n", "scale=two is not a number"),
    "no filters": ("[convolutional]\nfilters=0\n", "filters=0"),
    "binary filters": ("[convolutional]\nfilters=2\nbinary=1\n", "binary filters are not supported"),
    "filters of one bit": ("[convolutional]\nfilters=2\nxnor=1\n", "binary filters are not supported"),
    "an activation": ("[convolutional]\nfilters=2\nactivation=sine\n", "sine"),
    "a shortcut of other sizes": (f"{HALF}[maxpool]\nsize=3\nstride=3\n[shortcut]\nfrom=-2\n", "do not fit"),
    "a shortcut to what is not there": ("[dropout]\n[shortcut]\nfrom=-3\n", "-3"),
    "blocks of channels": ("[reorg]\nstride=4\n", "stride 4 does not fit"),
    "blocks of rows": ("[crop]\ncrop_height=5\ncrop_width=4\n[reorg]\nstride=2\n", "stride 2 does not fit"),
    "blocks of columns": ("[crop]\ncrop_height=6\ncrop_width=3\n[reorg]\nstride=2\n", "stride 2 does not fit"),
    "blocks back": ("[reorg]\nstride=2\nreverse=1\n", "stride 2 does not fit"),
    "groups of scores": ("[softmax]\ngroups=7\n", "7 groups do not divide 96 numbers"),
    "more rows than there are": ("[crop]\ncrop_height=7\ncrop_width=4\n", "7 x 4 pixels are more"),
    "more columns than there are": ("[crop]\ncrop_height=6\ncrop_width=5\n", "6 x 5 pixels are more"),
    "boxes of other channels": ("[yolo]\nclasses=2\nmask=0\nanchors=1,1\n", "4 channels are not 1 boxes of 7"),
    "two boxes of other channels": (
        "[yolo]\nclasses=3\nmask=2,0\nanchors=1,1\n", "4 channels are not 2 boxes of 8 numbers: set filters=16",
    ),
    "places of other numbers": ("[detection]\nside=1\nclasses=2\nnum=1\ncoords=4\n", "96 numbers are not the 7"),
    "four places of other numbers": (
        "[detection]\nside=2\nclasses=3\nnum=2\ncoords=5\n", "96 numbers are not the 60 of 4 places",
    ),
    "a part that is not there": ("[dropout]\n[route]\nlayers=-1\ngroups=2\ngroup_id=2\n", "group 2 of 2"),
    "routes of other sizes": (f"{HALF}[route]\nlayers=-1,-2\n", "-2|differ|axis"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_layer_does_not_mean_is_refused(name, tmp_path):
    text, match = REFUSED[name]
    (tmp_path / "net.cfg").write_text(NET + text)
    with pytest.raises(FormatError, match=match):
        darknet.load(tmp_path / "net.cfg")


READ = {
    "all pixels": ("[crop]\ncrop_height=6\ncrop_width=4\n", (1, 4, 6, 4)),
    "blocks of all": ("[reorg]\nstride=2\n", (1, 16, 3, 2)),
    "each score a group": ("[softmax]\ngroups=96\n", (1, 96)),
    "the last part": ("[dropout]\n[route]\nlayers=-1\ngroups=2\ngroup_id=1\n", (1, 2, 6, 4)),
    "numbers of places": ("[detection]\nside=4\nclasses=2\nnum=1\ncoords=3\n", (1, 96)),
    "shares of places": ("[detection]\nside=4\nclasses=2\nnum=1\ncoords=3\nsoftmax=1\n", (1, 96)),
}


@pytest.mark.parametrize("name", READ)
def test_what_keeps_to_it_is_read(name, tmp_path):
    text, shape = READ[name]
    (tmp_path / "net.cfg").write_text(NET + text)
    assert darknet.load(tmp_path / "net.cfg").outputs[0].shape == shape
