"""SqueezeNet in a web page: WebAssembly without a server behind it.

    python examples/micro/browser.py --weights compressed_SqueezeNet.net --labels synset.txt [folder] [--serve]

Writes a folder with a page, the linked module and its loader. Any web server can publish it; --serve does so on this
machine. Without weights the network has random ones. Needs LLVM's linker wasm-ld (package lld).
"""

import argparse
import json
import sys
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

import cgraph as cg
from cgraph.formats.deep_compression import read_deep_compression

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from squeezenet import SIZE, shapes, squeezenet  # noqa: E402


def random_layers() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return filters and biases for a trial without weights."""
    rng = np.random.default_rng(0)
    return [
        ((rng.standard_normal(s) / np.sqrt(np.prod(s[1:]))).astype(np.float32), np.zeros(s[0], np.float32))
        for s in shapes()
    ]


def write_page(folder: Path, weights: Path | None, labels: Path | None) -> None:
    """Write ``index.html``, ``model.wasm`` and ``model.mjs`` into the folder ``page``."""
    image = cg.Var((1, 3, SIZE, SIZE), "float32", "image")
    layers = read_deep_compression(weights, shapes()) if weights else random_layers()
    scores = cg.softmax(squeezenet(image, layers))
    print(cg.export(scores, image, folder / "page", target="wasm32", name="model", names=["scores"]))
    lines = labels.read_text().splitlines() if labels else [f"n class {i}" for i in range(1000)]
    names = [line.split(" ", 1)[-1].strip("'").split(",")[0] for line in lines]
    page = (HERE / "browser.html").read_text().replace("LABELS", json.dumps(names)).replace("SIZE", str(SIZE))
    (folder / "page" / "index.html").write_text(page)
    print(f"open {folder / 'page' / 'index.html'} through a web server")


def serve(folder: Path) -> None:
    """Serve the page on the loopback address until interrupted."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 8000), handler) as server:
        print("http://127.0.0.1:8000")
        server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description="SqueezeNet in a web page")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--serve", action="store_true")
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    write_page(folder, args.weights, args.labels)
    if args.serve:
        serve(folder / "page")


if __name__ == "__main__":
    main()
