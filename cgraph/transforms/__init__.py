"""Transformations of plain Python functions over arrays: jit, grad, value_and_grad and vmap.

A function is called once with tracers in place of its arrays (`trace`, `tracer`); what it returns is a graph, which is
compiled (`compile_function`), differentiated (`differentiate`) or batched (`vectorise`).
"""
