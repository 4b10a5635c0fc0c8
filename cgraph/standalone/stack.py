"""An upper bound of the stack that an exported function uses, computed from its assembly and its calls.

External functions (``memcpy``, mathematics) are not counted. The bound is unknown for processors whose assembly does
not state the size of frames.
"""

import re
from collections.abc import Iterable, Mapping

CFA = re.compile(r"\.cfi_def_cfa(?:_offset)?\s+(?:[^,\s]+,\s*)?(-?\d+)")
LABEL = re.compile(r"\"?([A-Za-z_.$][\w.$]*)\"?:")
FUNCTION = re.compile(r"\.type\s+\"?([\w.$]+)\"?\s*,\s*[@%]function")
SAVED = re.compile(r"^(\.v?save|v?push(?:\.w)?)\s*\{([^}]*)\}")
PADDED = re.compile(r"\.pad\s+#(\d+)")
ALIGNED = re.compile(r"andq\s+\$-(\d+), %rsp|and\s+sp, \w+, #0xf+([0-9a-f])0|bfc\s+\w+, #0, #(\d+)")
DECREMENTS = (
    (re.compile(r"subq\s+\$(\d+), %rsp"), 1),
    (re.compile(r"pushq\s+%\w+()"), 8),
    (re.compile(r"sub\s+sp, sp, #(\d+), lsl #12"), 4096),
    (re.compile(r"sub(?:\.?w)?\s+sp, (?:sp, )?#(\d+)$"), 1),
    (re.compile(r"st[pr]\s+.*\[sp, #-(\d+)\]!"), 1),
    (re.compile(r"addi\s+sp, sp, -(\d+)"), 1),
)
"""Instructions that enlarge a frame, and the bytes per unit of their operand; without an operand, one unit."""
RETURN_ADDRESS = 8  # bytes that a call pushes on x86-64


def stack_bound(assembly: str, calls: Mapping[str, Iterable[str]], entry: str) -> int | None:
    """Return an upper bound of the stack bytes of a call of `entry`; None if the assembly states no frames."""
    frames = frame_sizes(assembly)
    if entry not in frames:
        return None
    depth: dict[str, int] = {}
    pending = [entry]
    while pending:
        name = pending[-1]
        callees = [x for x in calls.get(name, ()) if x in frames]
        missing = [x for x in callees if x not in depth]
        if missing:
            pending += missing
            continue
        depth[name] = frames[name] + max((depth[x] for x in callees), default=0)
        pending.pop()
    return depth[entry]


def frame_sizes(assembly: str) -> dict[str, int]:
    """Return the bytes of each function's frame: from directives, or as the sum over instructions."""
    bodies: dict[str, list[str]] = {}
    names = set(FUNCTION.findall(assembly))
    body: list[str] = []
    for line in assembly.splitlines():
        label = LABEL.match(line)
        if label and label[1] in names:
            body = bodies[label[1]] = []
        body.append(line.strip())
    return {name: frame_size(body) for name, body in bodies.items()}


def frame_size(body: Iterable[str]) -> int:
    """Return the bytes of one function's frame, from its lines."""
    stated = pushed = decremented = alignment = 0
    previous = ""
    for line in body:
        cfa, pad, aligned = (x.search(line) for x in (CFA, PADDED, ALIGNED))
        if aligned and not (previous.endswith(" sp") or "sp" in line):
            aligned = None  # another register's bits
        previous = line
        stated = max(stated, int(cfa[1])) if cfa else stated
        pushed += (int(pad[1]) if pad else 0) + (saved_by(line) if line.startswith(".") else 0)
        decremented += decrement(line) + (0 if line.startswith(".") else saved_by(line))
        alignment = max(alignment, alignment_of(aligned)) if aligned else alignment
    return max(stated, pushed, decremented + RETURN_ADDRESS if decremented else 0) + alignment


def saved_by(line: str) -> int:
    """Return the bytes of the registers that an ARM instruction or directive pushes."""
    saved = SAVED.match(line)
    return sum(map(register_count, saved[2].split(","))) * (8 if "v" in saved[1][:2] else 4) if saved else 0


def decrement(line: str) -> int:
    """Return the bytes by which an instruction enlarges the frame."""
    for pattern, unit in DECREMENTS:
        match = pattern.search(line)
        if match:
            return unit * int(match[1] or 1)
    return 0


def alignment_of(match: re.Match) -> int:
    """Return the maximum padding in bytes of an instruction that aligns the stack."""
    if match[1]:
        return int(match[1])
    return 16 * (16 - int(match[2], 16)) if match[2] else 1 << int(match[3])


def register_count(text: str) -> int:
    """Return the number of registers of one item of a list, such as ``r4`` or ``d8-d15``."""
    numbers = [int(x) for x in re.findall(r"\d+", text)]
    return numbers[1] - numbers[0] + 1 if len(numbers) == 2 else 1
