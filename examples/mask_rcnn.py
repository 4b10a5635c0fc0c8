"""Find objects, their classes and their outlines in pictures and films, with Mask R-CNN.

    python examples/mask_rcnn.py                               synthetic pictures and a synthetic film
    python examples/mask_rcnn.py PICTURE... | FOLDER | FILM    writes out/<name>_found.png (or .gif, .mp4 ...)

--weights: torchvision's .pth (version 1) or matterport's .h5; else the small network that ships, for discs, squares and
triangles. --json prints the objects, --memory the use of every byte. H.264 films need the extra `video`.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import cgraph as cg
from cgraph.formats.pictures import ENDINGS, read_rgb
from nn.models.mask_rcnn.detector import Finder, finder
from nn.models.mask_rcnn.objects import as_json
from nn.models.mask_rcnn.tools.frames import Film, count_frames, is_film, read_film, write_film
from nn.models.mask_rcnn.tools.synthetic import TEST, film, synthetic_images

OUT, FRAMES, RATE = Path("out"), 48, 12


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Find objects in pictures and films.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PICTURE | FOLDER | FILM")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--least", type=float, default=0.6, help="score that an object must have")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--memory", action="store_true")
    return parser.parse_args()


def show(finds: Finder, name: str, picture: np.ndarray, as_text: bool = False) -> None:
    """Write a picture with its objects, and print their names."""
    image, detections = finds.draw(picture)
    image.save(OUT / f"{name}_found.png")
    listed = as_json(detections, finds.names)
    print(json.dumps({name: listed}) if as_text else f"{name}: {', '.join(one['name'] for one in listed)}")


def play(finds: Finder, name: str, shown: Film) -> None:
    """Write a film with the objects of every frame."""
    write_film(OUT / name, shown.rate, (finds.draw(picture)[0] for picture in count_frames(shown, name)))


def show_synthetic(finds: Finder, as_text: bool = False) -> None:
    """Show pictures and a film of the test seed, on which the network was not trained."""
    for i, picture in enumerate(synthetic_images(TEST, 0, 6).pictures.transpose(0, 2, 3, 1)):
        show(finds, f"shapes_{i}", picture, as_text)
    play(finds, "shapes_found.gif", Film(FRAMES, RATE, film(FRAMES)))


def main() -> None:
    options = arguments()
    finds = finder(options.weights, options.least)
    OUT.mkdir(exist_ok=True)
    if options.memory:
        print(cg.report(finds.predict.function))
    for path in [p for q in options.paths for p in (sorted(q.iterdir()) if q.is_dir() else [q])]:
        if is_film(path):
            play(finds, f"{path.stem}_found{path.suffix}", read_film(path))
        elif path.suffix.lower() in ENDINGS:
            show(finds, path.stem, np.asarray(read_rgb(path)), options.json)
    if not options.paths:
        show_synthetic(finds, options.json)


if __name__ == "__main__":
    main()
