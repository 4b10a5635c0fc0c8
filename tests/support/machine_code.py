"""Walks over the text of machine code: every order in which a kernel can execute tile instructions."""

import re

from cgraph.record import Record

REGISTERS = re.compile(r"%tmm\d")


class Instruction(Record):
    """One instruction, or a label (its word ends with a colon), with its operands as AT&T's syntax orders them."""

    word: str
    operands: str


def instructions(text: str) -> list[Instruction]:
    """The instructions and labels of assembly text, without directives and comments."""
    lines = [line.split("#")[0].split(None, 1) for line in text.splitlines()]
    return [
        Instruction(x[0], x[1].strip() if x[1:] else "")
        for x in lines
        if x and (not x[0].startswith(".") or x[0].endswith(":"))
    ]


def illegal_order(code: list[Instruction]) -> str | None:
    """What is wrong on some way from the first instruction to a return; None if every way is legal.

    A way is legal if it configures the registers before any other tile instruction, gives each one a value before it
    is read, multiplies different registers, and releases them before it returns.
    """
    labels = {x.word[:-1]: i for i, x in enumerate(code) if x.word.endswith(":")}
    nothing: frozenset[str] | None = None  # registers with values; None: not configured
    ways, done = [(0, nothing)], set()
    while ways:
        i, values = ways.pop()
        if (i, values) in done or i == len(code):
            continue
        done.add((i, values))
        x = code[i]
        if message := wrong(x, values):
            return message
        if x.word.startswith("j"):
            ways.append((labels[x.operands], values))
        if x.word not in ("jmp", "retq"):
            ways.append((i + 1, after(x, values)))
    return None


def wrong(x: Instruction, values: frozenset[str] | None) -> str | None:
    """Why an instruction may not be executed while these registers have values."""
    names = REGISTERS.findall(x.operands)
    if x.word == "retq":
        return "retq without tilerelease" if values is not None else None
    if x.word == "ldtilecfg":
        return "ldtilecfg twice" if values is not None else None
    if not names and x.word != "tilerelease":
        return None
    if values is None:
        return f"{x.word} without a configuration"
    if x.word.startswith("tdp") and len(set(names)) < 3:
        return f"{x.word} of equal registers"
    read = names if x.word.startswith(("tdp", "tilestored")) else []
    return next((f"{x.word} of {name}, which has no value" for name in read if name not in values), None)


def after(x: Instruction, values: frozenset[str] | None) -> frozenset[str] | None:
    """The registers with values after an instruction."""
    if x.word == "ldtilecfg":
        return frozenset()
    if x.word == "tilerelease" or values is None:
        return None
    return values | set(REGISTERS.findall(x.operands))
