"""ONNX operators on values whose lengths are known only at run time."""
