import re

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


def test_plans_that_are_beaten_are_circles_and_move_nothing():
    """In any order, also with equal bytes or equal times, and the axes are those of all plans."""
    best = [point(400, 0.0), point(300, 1.0), point(50, 5.0)]
    beaten = [point(350, 1.0), point(300, 1.5), point(200, 5.0), point(60, 5.0)]

    def line(points):
        return re.search(r'class="curve" d="([^"]+)"', curve_svg(points, "plans"))[1]

    assert line(best).count("H") == 2
    for points in ([*best, *beaten], [best[0], *beaten, *best[1:]], [best[0], *beaten[::-1], *best[:0:-1]]):
        assert line(points) == line(best)
        assert curve_svg(points, "plans").count("<circle") == 7
