"""The same answer in a quarter of the bytes: SqueezeNet 1.1 within a budget.

python examples/byte_budget.py     writes out/budget_memory.svg and out/budget.html
"""

from pathlib import Path

import numpy as np

import cgraph as cg
from cgraph.errors import bytes_text
from nn.models import squeezenet1_1

OUT = Path("out")


def main() -> None:
    OUT.mkdir(exist_ok=True)
    image = cg.Var((1, 3, 224, 224), name="image")
    model = squeezenet1_1(0)
    scores, weights = model(image), list(model.variables().values())
    picture = np.random.default_rng(0).standard_normal(image.shape).astype("float32")

    whole = cg.compile(scores, [image], freeze=weights)
    small = cg.compile(scores, [image], freeze=weights, budget=whole.nbytes // 4)
    same = np.array_equal(whole(picture), small(picture))
    print(f"SqueezeNet in {bytes_text(whole.nbytes)}, and in {bytes_text(small.nbytes)}: {small.compiled.order}")
    print(f"the same scores, bit for bit: {same}")

    (OUT / "budget_memory.svg").write_text(cg.function_svg(small, "SqueezeNet in a quarter"))
    (OUT / "budget.html").write_text(cg.page_html(small, "SqueezeNet in a quarter"))


if __name__ == "__main__":
    main()
