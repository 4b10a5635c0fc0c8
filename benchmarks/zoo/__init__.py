"""Architectures of other packages as ONNX files, each run by cgraph, onnxruntime and openvino."""
