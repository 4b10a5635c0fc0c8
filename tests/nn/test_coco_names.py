"""Names of COCO's classes in both numberings, against COCO's own list."""

from nn.models.mask_rcnn.coco_names import NAMES, UNUSED, in_a_row, with_gaps


def test_classes_of_coco_are_numbered_as_each_rule_does():
    assert len(in_a_row()) == 81 and len(with_gaps()) == 91
    assert with_gaps()[90] == in_a_row()[80] == "toothbrush"
    assert with_gaps()[18] == "dog" and with_gaps()[13] == "stop sign" and with_gaps()[12] == "unused"


def test_numbers_are_those_of_cocos_categories():
    """Some of instances_val2017.json, on both sides of every gap."""
    coco = {
        1: "person", 11: "fire hydrant", 13: "stop sign", 25: "giraffe", 27: "backpack", 28: "umbrella", 31: "handbag",
        44: "bottle", 46: "wine glass", 65: "bed", 67: "dining table", 70: "toilet", 72: "tv", 82: "refrigerator",
        84: "book", 90: "toothbrush",
    }  # fmt: skip
    names = with_gaps()
    assert {number: names[number] for number in coco} == coco
    assert tuple(i for i, name in enumerate(names) if name == "unused") == UNUSED


def test_both_numberings_have_the_same_names_in_the_same_order():
    assert tuple(x for x in with_gaps() if x != "unused") == in_a_row() == ("background", *NAMES)
    assert len(set(NAMES)) == len(NAMES) == 80
