"""The onnx package's own tests that pass, here and with onnxruntime; writes the list and docs/onnx.md.

python -m benchmarks.onnx_nodes            print the counts
python -m benchmarks.onnx_nodes --write    and write tests/formats/onnx_node_tests.txt and docs/onnx.md
"""

import argparse
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from cgraph.formats.onnx import backend
from tests.support.onnx_cases import KINDS, Case, cases, is_plain

ROOT = Path(__file__).parents[1]
LIST, DOCS = ROOT / "tests/formats/onnx_node_tests.txt", ROOT / "docs/onnx.md"
REASONS = {
    r"not supported: ai\.onnx\.(ml|preview)": "operators of the domains ai.onnx.ml and ai.onnx.preview",
    r"ImageDecoder": "decoding pictures is not an array operation",
}
BY_NAME = {
    "test_dft_inverse": "the expected imaginary parts are float32 rounding errors near 2e-7; cgraph returns 5e-15",
    "bernoulli": "the expected random numbers are NumPy's",
    "training_dropout": "the expected random numbers are NumPy's",
}


def outcome(case: Case) -> tuple[bool, str, bool, bool]:
    """Return whether a test passes or why not, whether it is plain, and whether its graph depends on values of
    inputs.
    """
    model = case.model()
    plain = is_plain(case, model)
    prepared = None
    try:
        prepared = backend.prepare(model)
        case.check(prepared, model)
    except Exception as error:  # any exception is this case's failure
        return False, f"{type(error).__name__}: {' '.join(str(error).split())}", plain, False
    return True, "", plain, bool(prepared.model and prepared.model.fixed)


def peer_passes(case: Case) -> bool:
    """Return True if onnxruntime passes."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    model = case.model()

    class Session:
        def __init__(self) -> None:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            self.session = onnxruntime.InferenceSession(model.SerializeToString(), options)

        def run(self, inputs: list[Any]) -> list[Any]:
            names = [x.name for x in self.session.get_inputs()]
            return self.session.run(None, dict(zip(names, inputs)))

    try:
        case.check(Session(), model)
    except Exception:  # any exception is this case's failure
        return False
    return True


def reason(name: str, text: str) -> str:
    """Return the reason why a case does not pass, in words."""
    for part, words in BY_NAME.items():
        if part in name:
            return words
    for pattern, words in REASONS.items():
        if re.search(pattern, text):
            return words
    return text[:160]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    passed: list[str] = []
    rows, failed = [], defaultdict(list)
    plain: Counter[str] = Counter()
    for kind in KINDS:
        ours = theirs = 0
        all_cases = cases(kind)
        for case in all_cases:
            good, text, is_plain_case, fixed = outcome(case)
            peer = peer_passes(case)
            ours, theirs = ours + good, theirs + peer
            if good:
                passed.append(case.key)
            else:
                failed[is_plain_case, reason(case.name, text)].append(case.key)
            if is_plain_case:
                plain.update(cases=1, ours=good, theirs=peer, fixed=good and fixed)
        rows.append(f"| {kind} | {ours} | {theirs} | {len(all_cases)} |")
    text = document(rows, plain, failed)
    print(text)
    if args.write:
        LIST.write_text("\n".join(sorted(passed)) + "\n")
        DOCS.write_text(text)


def document(rows: list[str], plain: Counter[str], failed: dict[tuple[bool, str], list[str]]) -> str:
    """Return the page docs/onnx.md."""
    import onnx
    import onnxruntime

    lines = [
        "# ONNX: supported operators",
        "",
        "Written by `python -m benchmarks.onnx_nodes --write`; a test compares the counts with the list "
        "`tests/formats/onnx_node_tests.txt`.",
        "",
        "Opsets 1 to 27 are read: opsets 7 to 27 with all their changes, older ones in their common forms. Shapes are "
        "static: `shapes` sets symbolic dimensions, and shape computations are folded while the graph is built. A "
        "length that is known only at run time has a maximum ([lengths](lengths.md)). `If`, `Loop` and `Scan` are "
        "unrolled or become loops of the graph. Gelu, layer, RMS and group norms, and rotary positions (halves or "
        "neighbours, with wide or narrow tables) become one op each if an exporter wrote them as several. Silu, "
        "hard-swish and gelu of 16-bit dtypes stay separate ops, which fusion combines in one kernel. Images stay `[n, "
        "c, h, w]`. A model with an unsupported operator is refused before anything is built; the error names the "
        "operator and its count.",
        "",
        f"## The test suites of onnx {onnx.__version__}",
        "",
        f"| suite | cgraph passes | onnxruntime {onnxruntime.__version__} passes | cases |",
        "|---|---|---|---|",
        *rows,
        "",
        "## Plain operators",
        "",
        "Node tests of ONNX's own domain, not `expanded`, whose inputs and outputs are all tensors of float32, "
        f"float64, int8, int32, int64, uint8 or bool: **{plain['ours']} of {plain['cases']} pass** (onnxruntime: "
        f"{plain['theirs']}).",
        "",
        f"Of these {plain['fixed']} take a shape, or their whole result, from the value of an input "
        "(`Reshape`, `Range`, `NonZero`, `NonMaxSuppression`, …). The backend builds such a graph for the value of a "
        "run, and again when the value changes. With `load`, pass the value in `constants`; otherwise its length has a "
        "maximum ([lengths](lengths.md)).",
        "",
        "Tests that fail:",
        "",
    ]
    for (is_plain_case, why), names in sorted(failed.items(), key=lambda x: (not x[0][0], -len(x[1]))):
        if is_plain_case:
            short = ", ".join(f"`{n.split('/')[1].removeprefix('test_')}`" for n in names)
            lines.append(f"- {why}: {short}")
    lines += ["", "## Other tests that fail", ""]
    for (is_plain_case, why), names in sorted(failed.items(), key=lambda x: -len(x[1])):
        if not is_plain_case:
            lines.append(f"- {len(names)}: {why}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
