"""Contents of the folder of a saved function: names, versions, and files of concatenated arrays.

manifest.json           versions, Vars, outputs, sums; small, and written last
program-TARGET.bin      tables: rows, arguments, relocations, incremental evaluation
kernels-TARGET.bin      machine code as one image, addresses in it are 0
interpreter-TARGET.bin  the same of the interpreter
constants-TARGET.bin    each content once, in the order in which the program first reads them
weights-TARGET.bin      constants that each run reads through a ring, at pages; only if there are any
state.bin               values of the cells
graph.onnx              the graph, if it was saved: for other versions and processors
"""

from collections.abc import Sequence
from zlib import crc32

FORMAT, VERSION = "cgraph function", 7
MANIFEST, STATE, GRAPH = "manifest.json", "state.bin", "graph.onnx"
SUM, SUM_END = b', "crc32": "', b'"}\n'  # end of a manifest: the checksum of everything before, in hexadecimal
IMAGES = ("kernels", "interpreter")
PAGE = 4096  # bytes; where weights begin that are read past the system's cache
KINDS = ("arena", "stop", "done", "args", "variable", "target", "constant")  # of symbols, by number
JUMP = "jump"  # in place of a kernel's family


def program_file(target: str) -> str:
    return f"program-{target}.bin"


def constants_file(target: str) -> str:
    return f"constants-{target}.bin"


def weights_file(target: str) -> str:
    return f"weights-{target}.bin"


def image_file(image: str, target: str) -> str:
    """Return the file of one of IMAGES."""
    return f"{image}-{target}.bin"


def with_sum(text: str) -> bytes:
    """Return the text of a JSON object with its own checksum as the last entry."""
    body = text.removesuffix("}").encode()
    return body + SUM + b"%08x" % crc32(body) + SUM_END


def sum_fits(raw: bytes) -> bool:
    """Return True if the text comes from `with_sum` and is unchanged."""
    at = len(raw) - len(SUM) - 8 - len(SUM_END)
    return at > 0 and raw[at:] == SUM + b"%08x" % crc32(raw[:at]) + SUM_END


def sum_of(parts: Sequence) -> int:
    """Return the CRC-32 of concatenated pieces: it detects damage, not malice."""
    crc = 0
    for part in parts:
        crc = crc32(part, crc)
    return crc
