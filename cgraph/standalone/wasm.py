"""WebAssembly: the linked module and the JavaScript loader of an exported function."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from cgraph.errors import FormatError
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
LOADER = """// Made by cgraph. const model = await load(bytes or a Response); model.run({image: numbers}).scores
const inputs = INPUTS;
const outputs = OUTPUTS;
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
  let end = (own.__heap_base.value + 63) & ~63;
  const places = new Map();
  for (const x of [...inputs, ...outputs]) {
    places.set(x, end);
    end = (end + x.bytes + 63) & ~63;
  }
  const missing = end - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / 65536));
  const view = (x, at) => new kinds[x.array](memory.buffer, at, x.bytes ? x.count : 0);

  function run(values) {
    for (const name of Object.keys(values))
      if (!inputs.some((x) => x.name === name)) throw new Error(`there is no input ${name}`);
    for (const x of inputs) {
      const value = values[x.name];
      if (value === undefined) throw new Error(`input ${x.name} is missing`);
      const bytes = ArrayBuffer.isView(value)
        ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
        : new Uint8Array(kinds[x.array].from(value).buffer);
      if (bytes.length !== x.bytes) throw new Error(`input ${x.name} has ${bytes.length} bytes, it needs ${x.bytes}`);
      new Uint8Array(memory.buffer, places.get(x), x.bytes).set(bytes);
    }
    const error = own.NAME_run(...[...inputs, ...outputs].map((x) => places.get(x)));
    if (error) throw new Error(`${errors[error]}: an index is outside its axis`);
    return Object.fromEntries(outputs.map((x) => [x.name, view(x, places.get(x)).slice()]));
  }

  return {
    inputs,
    outputs,
    run,
    state: Object.fromEntries(state.map((x) => [x.name, () => view(x, own[`NAME_${x.name}`].value)])),
    reset: () => own.NAME_reset?.(),
  };
}
"""


def loader(program: ExportProgram) -> str:
    """Return the text of ``NAME.mjs``, for browsers and node."""
    interface = program.interface
    texts = {
        "INPUTS": entries(interface.inputs),
        "OUTPUTS": entries(interface.outputs),
        "STATE": entries(interface.state),
        "ERRORS": json.dumps(program.errors),
        "KINDS": ", ".join(sorted({ARRAYS[x.type] for x in (*interface.inputs, *interface.outputs, *interface.state)})),
        "NAME": interface.prefix,
    }
    return re.sub("|".join(texts), lambda match: texts[match[0]], LOADER)  # once: values may contain these words


def entries(values: Iterable[CValue]) -> str:
    rows = [
        {"name": x.name, "array": ARRAYS[x.type], "count": x.count, "bytes": x.nbytes, "shape": list(x.spec.shape)}
        for x in values
    ]
    return json.dumps(rows)


def linked_module(raw: bytes, program: ExportProgram) -> bytes:
    """Return the linked module of an object file. FormatError without LLVM's linker, or if it fails."""
    linker = shutil.which("wasm-ld")
    if linker is None:
        raise FormatError("wasm-ld is not installed; it links WebAssembly modules. Install LLVM's linker (package lld)")
    name = program.interface.prefix
    exports = [f"{name}_run", "__heap_base", *(f"{name}_{x.name}" for x in program.interface.state)]
    exports += [f"{name}_reset"] if program.start_state else []
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "model.o"), Path(folder, "model.wasm")
        source.write_bytes(raw)
        options = ["--no-entry", "--allow-undefined", "--strip-all", "-z", f"stack-size={STACK_BYTES}"]
        names = [f"--export={x}" for x in exports]
        status, errors = run_program([linker, *options, *names, "-o", str(result), str(source)])
        if status:
            raise FormatError(f"wasm-ld failed: {errors.strip()[:500]}. Check its version")
        return result.read_bytes()
