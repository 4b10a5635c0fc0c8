"""A graph as image steps: what belongs to a step, its window, its work, and what cannot be cut."""

import cgraph as cg
from cgraph.budget.patches.image_steps import ImageStep, image_shape, image_steps, steps_and_places
from cgraph.kernels.views.window import Window


def test_steps_of_a_graph_join_what_belongs_to_a_convolution():
    x, s = cg.Var((2, 3, 9, 8), name="x"), cg.Var((4, 3, 3, 3))
    y = cg.relu(cg.conv2d(x, s, stride=2, pad=1) + cg.Var((1, 4, 1, 1)))
    z = cg.concat([y, cg.avg_pool2d(y, 3, 1, pad=1)], axis=1)
    found = image_steps((cg.mean(z, axis=(2, 3)),), (x,))
    assert [step.name for step in found] == ["x", "conv2d", "avg_pool", "concat", "sum"]
    assert [step.operands for step in found] == [(), (0,), (1,), (1, 2), (3,)]
    assert [step.shape for step in found] == [(6, 9, 8), (8, 5, 4), (8, 5, 4), (16, 5, 4), (16, 1, 1)]
    assert found[1].window == Window((3, 3), (2, 2), (1, 1, 1, 1))
    assert [step.work for step in found] == [0, 28, 9, 0, 20]
    assert [step.splits for step in found] == [False, True, True, True, False]


def test_an_element_of_one_image_costs_one_operation_and_of_several_two():
    x = cg.Var((1, 3, 8, 8), name="x")
    y = cg.conv2d(x, cg.Var((3, 3, 1, 1)))
    found = image_steps((cg.relu(y), y + x, y * y, cg.tanh(y)), (x,))
    assert [(step.name, step.work) for step in found[2:]] == [("relu", 1), ("add", 2), ("multiply", 1), ("tanh", 1)]


def test_what_is_no_op_on_images_is_computed_whole():
    x = cg.Var((1, 3, 8, 8), name="x")
    total = cg.cumsum(x, 3)
    found = image_steps((total, *cg.top_k(x, 2)), (x,))
    assert [(step.name, step.splits, step.work) for step in found[1:3]] == [("cumsum", False, 1), ("top_k", False, 1)]
    assert [step.shape for step in found[1:3]] == [(3, 8, 8), (96, 1, 1)]


def test_a_value_that_is_read_in_two_forms_is_one_operand():
    x = cg.Var((1, 3, 8, 8), name="x")
    y, z = cg.conv2d(x, cg.Var((4, 3, 1, 1))), cg.conv2d(x, cg.Var((5, 3, 1, 1)))
    again = cg.reshape(cg.reshape(y, (4, 64)), y.shape)
    found = image_steps((cg.concat([y, again, z], 1),), (x,))
    assert (found[-1].name, found[-1].operands, found[-1].splits) == ("concat", (1, 2), True)


def test_windows_have_the_strides_pads_and_dilations_of_each_axis():
    x = cg.Var((1, 4, 20, 21), name="x")
    y = cg.conv2d(x, cg.Var((6, 2, 2, 3)), stride=(1, 2), pad=(1, 2, 0, 3), dilation=(3, 1), groups=2)
    z = cg.max_pool2d(x, (2, 3), (1, 2), pad=(0, 1, 1, 0))
    conv, pool = image_steps((y, z), (x,))[1:]
    assert conv.window == Window((2, 3), (1, 2), (1, 2, 0, 3), (3, 1)) and conv.work == 2 * 2 * 3 + 1
    assert pool.window == Window((2, 3), (1, 2), (0, 1, 1, 0)) and pool.work == 6
    assert conv.shape == (6, *y.shape[2:]) and pool.shape == (4, *z.shape[2:])


def test_padding_that_ceil_adds_and_filters_that_move_are_not_cut():
    x = cg.Var((1, 3, 8, 8), name="x")
    pools = [cg.avg_pool2d(x, 3, 2, ceil=ceil, count_pad=pad) for ceil in (False, True) for pad in (False, True)]
    steps = image_steps((*pools, cg.max_pool2d(x, 3, 2, ceil=True)), (x,))[1:]
    assert [step.splits for step in steps] == [True, True, True, False, True]
    filters = cg.reshape(cg.sum(x, (2, 3)), (1, 3, 1, 1))
    assert not image_steps((cg.conv2d(x, filters),), (x,))[-1].splits


def test_a_step_goes_on_only_where_nobody_else_reads_and_the_shape_stays():
    x = cg.Var((1, 3, 8, 8), name="x")
    y = cg.conv2d(x, cg.Var((3, 3, 1, 1)))
    assert [step.name for step in image_steps((cg.relu(y),), (x,))] == ["x", "conv2d"]
    assert [step.name for step in image_steps((cg.relu(y), cg.tanh(y)), (x,))][2:] == ["relu", "tanh"]
    assert len(image_steps((y * cg.Var((2, 1, 1, 1)),), (x,))) == 3, "the product has more images"
    joined = cg.concat([x, x * 2.0], 2)
    assert image_steps((joined,), (x,))[-1].splits is False, "a concat along rows"
    steps, places = steps_and_places((cg.relu(y),), (x,))
    assert [places[node] for node in (x, y)] == [0, 1] and len(steps) == 2 and len(places) == 3


def test_shapes_are_channels_times_images_rows_and_columns():
    assert image_shape(cg.Var((2, 3, 4, 5))) == (6, 4, 5) and image_shape(cg.Var((2, 3))) == (6, 1, 1)
    assert image_shape(cg.Var(())) == (1, 1, 1) and ImageStep("x", (6, 4, 5)).size == 120


def test_products_and_sums_over_pixels_count_their_terms():
    x = cg.Var((2, 3, 4, 5), name="x")
    total = cg.sum(x, (2, 3))
    steps = image_steps((total @ cg.Var((3, 7)),), (x,))
    assert [(step.work, step.shape, step.splits) for step in steps[1:]] == [
        (20, (6, 1, 1), False),
        (4, (14, 1, 1), False),
    ]


def test_what_depends_on_any_input_is_a_step():
    inputs = tuple(cg.Var((1, 3, 8, 8), name=name) for name in ("left", "middle", "right"))
    outputs = tuple(cg.relu(x) for x in inputs)
    for i in range(1, 4):
        names = [step.name for step in image_steps(outputs, inputs[:i])]
        assert names == ["left", "middle", "right"][:i]


def test_steps_are_in_the_order_in_which_the_user_wrote_them():
    x = cg.Var((1, 3, 8, 8), name="x")
    first, second, third = (cg.conv2d(x, cg.Var((3, 3, n, n))) for n in (1, 3, 5))
    for outputs in ((third, first, second), (second, third, first)):
        assert [step.shape for step in image_steps(outputs, (x,))[1:]] == [(3, 8, 8), (3, 6, 6), (3, 4, 4)]
