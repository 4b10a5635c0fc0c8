"""WebAssembly with vectors of 128 bits: browsers and node.

Source: WebAssembly Core Specification 2.0, vector instructions.
"""

from cgraph.kernels.isa.records import Architecture, CodeGeneration, Target

WASM = Target("wasm32", "generic", "+simd128,+bulk-memory", 4, 16, False, "wasm")
OBJECTS = CodeGeneration(
    "wasm32-unknown-unknown", "", relocation="static", code_model="small", address_bits=32, form="wasm"
)
ARCHITECTURE = Architecture("wasm", (WASM,), {}, OBJECTS)
