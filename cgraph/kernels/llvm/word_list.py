"""Lists among the arguments of an exported kernel, whose words may be constants or have 32 bits."""

from typing import Any

from cgraph.kernels.llvm.values import Builder, Ptr, Val


class WordList(Ptr):
    """Words of a kernel's arguments from a number on; ``p + n`` begins n words later, `load` returns int64.

    Parameters
        number: of the first word; an integer, or a value where a kernel computes it
    """

    __slots__ = ("number",)

    def __init__(self, k: Builder, number: Any) -> None:
        super().__init__(k, k.words.v, "i8")
        self.number = number

    def __add__(self, elements: Any) -> "WordList":
        return WordList(self.k, self.moved(elements))

    def load(self, offset: Any = 0, lanes: int = 0, align: int | None = None) -> Val:
        """Return the word at `offset` as int64."""
        return self.k.load_word(self.moved(offset))

    def moved(self, elements: Any) -> Any:
        """Return the number of the word that many words later.

        Raises
            TypeError: the number is computed, but some words of the list may not lie in the table
        """
        if not isinstance(elements, int) and isinstance(self.number, int) and self.number < self.k.word_table.first:
            raise TypeError(f"a kernel reads word {self.number} and following by a computed number: not is_unrolled")
        return self.number + elements
