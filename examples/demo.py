"""The main job, without a download: train a small network, find objects with one that ships, look where bytes live.

make demo     writes pictures, pages and a report to out/
"""

import sys
from pathlib import Path

import numpy as np

import cgraph as cg
import nn
from cgraph.errors import bytes_text
from cgraph.view.dot import render
from nn.models.mask_rcnn.detector import finder

sys.path.insert(0, str(Path(__file__).parent))
import byte_budget
from mask_rcnn import show_synthetic
from train_digits import HELD_OUT, OUT, digits


def show(name: str, function: cg.Function) -> None:
    """Write what a Function looks like: memory, graph, both in one page, and a report."""
    compiled = function.compiled
    (OUT / f"{name}_memory.svg").write_text(cg.function_svg(function, name))
    (OUT / f"{name}.html").write_text(cg.page_html(function, name))
    (OUT / f"{name}_graph.dot").write_text(cg.function_dot(function))
    (OUT / f"{name}_report.txt").write_text(str(cg.report(function)))
    try:
        (OUT / f"{name}_graph.svg").write_bytes(render(cg.function_dot(function), "svg"))
    except cg.CgraphError as error:
        print(f"no {name}_graph.svg: {error}")
    alone, bound = compiled.unshared_nbytes, compiled.lower_bound
    sizes = f"{bytes_text(alone):>11} {bytes_text(function.nbytes):>11} {bytes_text(bound):>11}"
    print(f"{name:<10} {len(compiled.layout.steps):>5} {sizes} {function.nbytes / bound:>7.3f}")


def draw(pictures: np.ndarray, found: np.ndarray, wanted: np.ndarray, path: Path) -> None:
    """Held-out digits with what the network says of them; wrong ones in red."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for i, axes in enumerate(figure.subplots(4, 10).ravel()):
        axes.imshow(pictures[i, 0], cmap="gray_r")
        axes.set_title(str(found[i]), fontsize=9, color="black" if found[i] == wanted[i] else "red")
        axes.axis("off")
    FigureCanvasAgg(figure).print_figure(path, dpi=110)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    pictures, wanted = digits()
    train = nn.Loader((pictures[:-HELD_OUT], wanted[:-HELD_OUT]), batch=50)
    model = nn.models.lenet(0, image=(1, 8, 8))
    optimiser = nn.Optimiser(rate=nn.optim.Cosine(0.002, steps=28 * 15))
    history = nn.train(model, train, optimiser=optimiser, epochs=15)
    history.plot(OUT / "loss.png")

    predict = nn.compile(model, batch=100)
    found = predict(pictures[-HELD_OUT:]).argmax(1)
    right = (found == wanted[-HELD_OUT:]).mean()
    print(f"{right:.1%} of {HELD_OUT} digits that it never saw are right\n")
    draw(pictures[-HELD_OUT:], found, wanted[-HELD_OUT:], OUT / "digits.png")

    finds = finder()
    show_synthetic(finds)
    print(f"\n{'':<10} {'steps':>5} {'unshared':>11} {'shared':>11} {'lower bound':>11} {'ratio':>7}")
    show("training", nn.training_step(model, nn.losses.cross_entropy, optimiser, train.at(0)).function)
    show("inference", predict.function)
    show("mask_rcnn", finds.predict.function)
    byte_budget.main()
    print(f"\nwrote {', '.join(sorted(p.name for p in OUT.iterdir()))} to {OUT}/")


if __name__ == "__main__":
    main()
