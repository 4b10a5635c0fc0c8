"""load: a saved function or a model file as a callable. For a folder it imports nothing of the compiler."""

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from cgraph import slots
from cgraph.collector import rare_collections
from cgraph.engine.cpu.cores import check_threads
from cgraph.errors import ArgumentError, CgraphError, FormatError
from cgraph.kernels.isa.architectures import host_features
from cgraph.running.runner import Runner
from cgraph.saved.folder import Folder
from cgraph.saved.function import SavedFunction
from cgraph.saved.layout import GRAPH, MANIFEST
from cgraph.saved.manifest import entries_of, get, malformed, manifest_of, misfit, target_of
from cgraph.saved.parts import Files, Parts, check_file


def load(
    path: str | os.PathLike,
    *,
    threads: int = 0,
    trust: bool = False,
    verify: bool = False,
    in_memory: bool = False,
    shapes: Mapping[str, Any] | None = None,
    constants: Mapping[str, Any] | None = None,
    maximum: Mapping[str, int] | None = None,
    state: Mapping[str, str] | None = None,
    weights: Any = None,
    **options: Any,
) -> Any:
    """Load a model file, or the folder of a saved function, as a callable.

    Call it with arrays by position, by name or in a dictionary, or as onnxruntime: ``f(image)``, ``f(image=x)``,
    ``f({"image": x})``, ``f.run(["boxes"], {"image": x})``. Results of a file are a list that also takes names:
    ``f(image)["boxes"]``.

    Parameters
        path: an ONNX (``.onnx``), TFLite (``.tflite``), Keras (``.h5``) or Darknet (``.cfg``) file, or a folder that
            `Function.save` wrote. A folder is loaded with the values of its cells; NumPy and a few modules suffice
        threads: 0 for all cores that this process may use
        trust: of a folder: run its machine code even if other users may have written it
        verify: of a folder: check constants and graph too, which takes about a second for a few gigabytes; other files
            are always checked. Weights that runs read from the folder are compared with checksums by every run
        in_memory: of a folder: copy constants instead of mapping them (truncating a mapped file kills the process)
        shapes: of an ONNX file: sizes of symbolic dimensions by name, ``{"batch": 1}``, or whole shapes of inputs. All
            other dimensions may vary from call to call: each size is planned at its first use, and the plans of the
            latest 16 sizes are kept. Of a TFLite file: shapes of inputs, and sizes of axes such as ``{"x.1": 160}``. Of
            a Keras or Darknet network: ``{"batch": n}``
        constants, maximum, state: of an ONNX file: see `cgraph.formats.onnx.load` and `Model.with_state`
        weights: the file with the parameters of a Darknet network; or `StreamedWeights`, as for `cgraph.compile`
        options: of a file: as for `cgraph.compile`, such as ``budget="20MiB"``
    Returns
        a `Function`; a `SizedFunction` if sizes vary; a `SavedFunction` of a folder
    Raises
        ArgumentError: `path` is not a path
        GraphError: a negative number of threads, or an unknown option
        FormatError: the file is not a model that can be read, or an option does not apply to it. A folder is damaged,
            or writable by other users; or its code is for another version, system or processor, and it has no graph
            that could be compiled instead
    """
    check_threads(threads)
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"load takes the path of a file or folder, not {type(path).__name__}; write it to a file")
    settings = {"shapes": shapes, "constants": constants, "maximum": maximum, "state": state, "weights": weights}
    switches = {"trust": trust, "verify": verify, "in_memory": in_memory}
    if os.path.exists(path) and not os.path.isdir(path):
        check_unused(path, switches, "applies to saved folders only")
        with rare_collections():
            return slots.load_model(path, settings, {"threads": threads, **options})
    check_unused(path, settings | options, "changes nothing: a saved function is planned")
    return load_folder(path, threads, trust, verify, in_memory)


def check_unused(path: str | os.PathLike, options: Mapping[str, Any], reason: str) -> None:
    """Raise FormatError if one of the options, which do not apply to what is loaded, was passed."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise FormatError(f"{os.fspath(path)}: {name}= {reason}. Leave it out")


def load_folder(path: str | os.PathLike, threads: int, trust: bool, verify: bool, in_memory: bool) -> Runner:
    """Return the saved function of a folder."""
    opened = Folder(path, trust)
    try:
        if MANIFEST not in opened:
            raise not_saved("saved_model.pb" in opened)
        return load_files(opened, threads, verify, in_memory)
    except CgraphError as error:
        raise FormatError(f"{os.fspath(path)}: {error}") from None
    finally:
        opened.close()


def not_saved(is_tensorflow: bool) -> FormatError:
    """Return the error for a folder without a manifest."""
    if is_tensorflow:
        return FormatError("the folder holds a TensorFlow SavedModel. Convert it to ONNX (tf2onnx) or TFLite")
    return FormatError(f"it is a folder without {MANIFEST}: not a saved function. Pass a folder of Function.save")


def load_files(files: Files, threads: int, verify: bool, in_memory: bool) -> Runner:
    """Return the function of these files."""
    try:
        return load_or_compile(files, threads, verify, in_memory)
    except RecursionError:
        raise malformed("lists in lists without end") from None


def load_or_compile(files: Files, threads: int, verify: bool, in_memory: bool) -> Runner:
    """Return the saved function, or its graph compiled if the code does not fit this machine and version."""
    entries, features = entries_of(files[MANIFEST]), host_features()
    reason = misfit(entries, features)
    if reason:
        if isinstance(files, Folder) and GRAPH in files:
            return compile_graph(graph_of(files, entries), entries, threads)
        raise FormatError(reason)
    manifest = manifest_of(entries)
    if GRAPH in manifest.files and isinstance(files, Folder):
        check_file(GRAPH, files[GRAPH], manifest.files, verify)
    target = target_of(get(entries, "targets", dict), features)
    assert target is not None  # misfit
    parts = Parts(files, manifest, target, verify, in_memory)
    if entries.get("trims") is None:
        return SavedFunction(parts, threads)
    return import_module("cgraph.saved.trimmed").TrimmedSavedFunction(parts, threads)


def graph_of(folder: Folder, entries: dict[str, Any]) -> memoryview:
    """Return the stored graph of a program, checked against the manifest's checksum; formats 1 and 2 have none."""
    graph, sums = folder[GRAPH], entries.get("files")
    if entries.get("version") not in WITHOUT_SUM:
        check_file(GRAPH, graph, sums if isinstance(sums, dict) else {}, True)
    return graph.data


def compile_graph(graph: memoryview, entries: dict[str, Any], threads: int) -> Runner:
    """Compile a graph for this machine."""
    names = entries.get("names")
    labels = names if isinstance(names, list) and all(isinstance(x, str) for x in names) else ()
    return slots.compile_onnx(graph, entries.get("single") is True, threads, labels)


WITHOUT_SUM = (1, 2)  # formats whose manifest does not list the graph


def unpickle(files: Mapping[str, bytes]) -> Runner:
    """Return a function from its files' bytes. Unpickling runs code in any case, so trust is not checked."""
    arrays = {name: np.frombuffer(raw, np.uint8) for name, raw in files.items()}
    return load_files(arrays, threads=0, verify=True, in_memory=True)


unpickled = unpickle  # as older pickles name it
