"""Names and checksums of a saved function's files."""

import json
from zlib import crc32

import pytest

from cgraph.saved.layout import (
    IMAGES,
    KINDS,
    constants_file,
    image_file,
    program_file,
    sum_fits,
    sum_of,
    weights_file,
    with_sum,
)


def test_every_file_of_a_target_has_a_name_of_its_own():
    names = [program_file("a"), constants_file("a"), weights_file("a"), *(image_file(x, "a") for x in IMAGES)]
    assert len(set(names)) == 5 and all(name.endswith("-a.bin") for name in names)
    assert constants_file("a") == "constants-a.bin" and image_file("kernels", "b") == "kernels-b.bin"
    assert len(set(KINDS)) == 7 and KINDS[-1] == "constant"


@pytest.mark.parametrize("entries", [{"a": 1}, {"text": 'crc32": "é'}, {"deep": {"er": []}}], ids=str)
def test_a_text_with_its_sum_is_json_and_any_change_is_noticed(entries):
    raw = with_sum(json.dumps(entries))
    assert sum_fits(raw)
    read = json.loads(raw)
    assert {k: v for k, v in read.items() if k != "crc32"} == entries and list(read)[-1] == "crc32"
    for at in range(len(raw)):
        assert not sum_fits(raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :])
        assert not sum_fits(raw[:at])
    assert not sum_fits(raw + b"\n") and not sum_fits(b"")
    assert not sum_fits(with_sum("}")), "a sum of nothing"


def test_a_sum_of_parts_is_that_of_the_whole():
    assert sum_of([b"ab", b"", b"cd"]) == crc32(b"abcd") and sum_of([]) == 0
