import nn
from nn.summary import rows_of, table, text


def test_a_layer_that_is_used_twice_has_two_rows_and_its_values_once():
    layer = nn.Linear(3, 3)
    model = nn.Sequential(nn.Input((3,)), layer, nn.Activation("relu"), layer)
    rows, macs = rows_of(model, n=2)
    assert [r.kind for r in rows] == ["Input", "Linear", "Activation", "Linear"]
    assert macs == 2 * 2 * 9 and model.size == 12
    assert str(nn.summary(model)).splitlines()[-1].split()[-2:] == ["12", "18"]


def test_numbers_are_aligned_to_the_right():
    lines = table([("a", "b", "c", "d"), ("x", "y", "z", "100"), ("total", "", "", "7")]).splitlines()
    assert len({len(x) for x in lines}) == 1 and lines[-1].endswith("    7")


def test_a_shape_without_axes_is_a_number():
    assert text(()) == "number" and text((2, 3)) == "2×3"
