"""Random shapes, axes and arrays for tests that compare with others."""

from typing import Any

import numpy as np


class Draws:
    """What a function draws. Changes: the generator's state."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def whole(self, low: int, high: int) -> int:
        """Between both, which may be drawn."""
        return int(self.rng.integers(low, high + 1))

    def of(self, *choices: Any) -> Any:
        return choices[self.whole(0, len(choices) - 1)]

    def maybe(self, **attributes: Any) -> dict[str, Any]:
        """Each attribute with a chance of one half; else its default holds."""
        return {name: value for name, value in attributes.items() if self.of(True, False)}

    def shape(self, least: int, most: int, largest: int = 4) -> tuple[int, ...]:
        return tuple(self.whole(1, largest) for _ in range(self.whole(least, most)))

    def axis(self, rank: int) -> int:
        return self.whole(-rank, rank - 1)

    def axes(self, rank: int, least: int = 1) -> list[int]:
        """Some axes, each counted from one end or the other."""
        some = self.rng.permutation(rank)[: self.whole(least, rank)]
        return [int(a) - self.of(0, rank) for a in some]

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.normal(size=shape).astype("f4")

    def positive(self, *shape: int) -> np.ndarray:
        return self.rng.uniform(0.2, 3, shape).astype("f4")

    def numbers(self, dtype: str, *shape: int, low: int = -9, high: int = 9) -> np.ndarray:
        """Whole numbers."""
        return self.rng.integers(max(low, 0) if dtype[0] == "u" else low, high + 1, shape).astype(dtype)

    def drawn(self, *shape: int) -> np.ndarray:
        """Of a dtype that is drawn as well."""
        return self.normal(*shape) if self.of(True, False) else self.numbers(self.of("int32", "int64"), *shape)
