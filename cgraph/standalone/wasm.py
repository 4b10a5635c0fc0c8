"""WebAssembly: the linked module and the JavaScript loader of an exported function."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from cgraph.errors import FormatError
from cgraph.standalone.header import errors_of
from cgraph.standalone.interface import CValue
from cgraph.standalone.program import ExportProgram
from cgraph.system.child_processes import run_program

STACK_BYTES = 1 << 16
ARRAYS = {
    "float": "Float32Array",
    "double": "Float64Array",
    "int8_t": "Int8Array",
    "uint8_t": "Uint8Array",
    "int16_t": "Int16Array",
    "uint16_t": "Uint16Array",
    "int32_t": "Int32Array",
    "uint32_t": "Uint32Array",
    "int64_t": "BigInt64Array",
    "uint64_t": "BigUint64Array",
}
LOADER = """// Made by cgraph. const model = await load(bytes or a Response); model.FIRST({image: numbers}).scores
const runs = RUNS;
const state = STATE;
const errors = ERRORS;
const kinds = { KINDS };

export async function load(source) {
  source = await source;
  const bytes = typeof Response !== "undefined" && source instanceof Response ? await source.arrayBuffer() : source;
  const module = await WebAssembly.compile(bytes);
  let memory;
  const copy = (to, from, count) => { new Uint8Array(memory.buffer).copyWithin(to, from, from + count); return to; };
  const whole = (low, high) => BigInt.asUintN(64, low) | (BigInt.asUintN(64, high) << 64n);
  const put = (to, value) => {
    const view = new DataView(memory.buffer, to >>> 0, 16);
    view.setBigUint64(0, BigInt.asUintN(64, value), true);
    view.setBigUint64(8, BigInt.asUintN(64, value >> 64n), true);
  };
  const env = {
    memcpy: copy,
    memmove: copy,
    __multi3: (to, a, b, c, d) => put(to, whole(a, b) * whole(c, d)),
    __ashlti3: (to, low, high, n) => put(to, whole(low, high) << BigInt(n)),
    __lshrti3: (to, low, high, n) => put(to, whole(low, high) >> BigInt(n)),
  };
  for (const { name } of WebAssembly.Module.imports(module)) {
    const plain = name.endsWith("f") && Math[name.slice(0, -1)] ? name.slice(0, -1) : name;
    env[name] ??= Math[plain] ?? (() => { throw new Error(`this page has no function ${name}`); });
  }
  const own = (await WebAssembly.instantiate(module, { env })).exports;
  memory = own.memory;
  const start = (own.__heap_base.value + 63) & ~63;
  const places = new Map();
  let end = start;
  for (const { inputs, outputs } of Object.values(runs)) {
    let at = start; // one run at a time: all use the same bytes
    for (const x of [...inputs, ...outputs]) {
      places.set(x, at);
      at = (at + x.bytes + 63) & ~63;
    }
    end = Math.max(end, at);
  }
  const missing = end - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / 65536));
  const view = (x, at) => new kinds[x.array](memory.buffer, at, x.bytes ? x.count : 0);

  const runner = (name, { inputs, outputs }) => {
    const run = (values) => {
      for (const key of Object.keys(values))
        if (!inputs.some((x) => x.name === key)) throw new Error(`there is no input ${key}`);
      for (const x of inputs) {
        const value = values[x.name];
        if (value === undefined) throw new Error(`input ${x.name} is missing`);
        const bytes = ArrayBuffer.isView(value)
          ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
          : new Uint8Array(kinds[x.array].from(value).buffer);
        if (bytes.length !== x.bytes) throw new Error(`input ${x.name} has ${bytes.length} bytes, it needs ${x.bytes}`);
        new Uint8Array(memory.buffer, places.get(x), x.bytes).set(bytes);
      }
      const error = own[`NAME_${name}`](...[...inputs, ...outputs].map((x) => places.get(x)));
      if (error) throw new Error(`${errors[error]}: an index is outside its axis`);
      return Object.fromEntries(outputs.map((x) => [x.name, view(x, places.get(x)).slice()]));
    };
    return Object.assign(run, { inputs, outputs });
  };

  return {
    ...runs.run, // inputs and outputs, of a module with one run
    ...Object.fromEntries(Object.entries(runs).map(([name, values]) => [name, runner(name, values)])),
    state: Object.fromEntries(state.map((x) => [x.name, () => view(x, own[`NAME_${x.name}`].value)])),
    reset: () => own.NAME_reset?.(),
  };
}
"""


def loader(programs: Sequence[ExportProgram]) -> str:
    """Return the text of ``NAME.mjs``, for browsers and node. Each run is a function of the loaded model."""
    interface = programs[0].interface
    runs = {f"run{x.suffix}": x.interface for x in programs}
    values = {x.type for own in runs.values() for x in (*own.inputs, *own.outputs, *own.state)}
    sides = (
        f'{json.dumps(name)}: {{"inputs": {entries(x.inputs)}, "outputs": {entries(x.outputs)}}}'
        for name, x in runs.items()
    )
    texts = {
        "RUNS": f"{{{', '.join(sides)}}}",
        "STATE": entries(interface.state),
        "ERRORS": json.dumps(errors_of(programs)),
        "KINDS": ", ".join(sorted(ARRAYS[x] for x in values)),
        "FIRST": next(iter(runs)),
        "NAME": interface.prefix,
    }
    return re.sub("|".join(texts), lambda match: texts[match[0]], LOADER)  # once: values may contain these words


def entries(values: Iterable[CValue]) -> str:
    rows = [
        {"name": x.name, "array": ARRAYS[x.type], "count": x.count, "bytes": x.nbytes, "shape": list(x.spec.shape)}
        for x in values
    ]
    return json.dumps(rows)


def linked_module(raw: bytes, programs: Sequence[ExportProgram]) -> bytes:
    """Return the linked module of an object file. FormatError without LLVM's linker, or if it fails."""
    linker = shutil.which("wasm-ld")
    if linker is None:
        raise FormatError("wasm-ld is not installed; it links WebAssembly modules. Install LLVM's linker (package lld)")
    interface = programs[0].interface
    exports = [*(x.run_name for x in programs), "__heap_base", *(interface.symbol(x.name) for x in interface.state)]
    exports += [interface.symbol("reset")] if programs[0].start_state else []
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "model.o"), Path(folder, "model.wasm")
        source.write_bytes(raw)
        options = ["--no-entry", "--allow-undefined", "--strip-all", "-z", f"stack-size={STACK_BYTES}"]
        names = [f"--export={x}" for x in exports]
        status, errors = run_program([linker, *options, *names, "-o", str(result), str(source)])
        if status:
            raise FormatError(f"wasm-ld failed: {errors.strip()[:500]}. Check its version")
        return result.read_bytes()
