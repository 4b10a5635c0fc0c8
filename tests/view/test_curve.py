from cgraph.view.curve import Point, cheapest, curve_svg, staircase


def point(nbytes, seconds, means="as it is", asked=False):
    return Point(nbytes, means, 0, 0, 0, seconds, asked)


def test_a_plan_that_another_beats_in_bytes_and_time_is_not_on_the_line():
    whole, beaten, better = point(300, 0.0), point(200, 2.0), point(100, 1.0)
    assert cheapest([whole, beaten, better]) == [whole, better]


def test_the_line_goes_across_before_it_falls():
    assert staircase([(0, 0), (10, 5)]) == "M0.0 0.0H10.0V5.0"


def test_one_plan_without_bytes_is_drawn():
    assert curve_svg([point(0, 0.0)], "nothing").count("<circle") == 1


def test_names_are_safe_in_the_picture():
    text = curve_svg([point(64, 0.0, means="<b>")], "<script>")
    assert "<b>" not in text
    assert "<script>" not in text
