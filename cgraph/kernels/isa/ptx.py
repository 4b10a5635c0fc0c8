"""NVIDIA's GPUs, whose code is PTX, a text that the driver translates."""

from cgraph.kernels.isa.records import Architecture, CodeGeneration, Target


def gpu_target(major: int, minor: int) -> Target:
    """Return the target of a GPU of this compute capability."""
    features = "+ptx80" if major <= 9 else ""  # PTX 8.0 runs on drivers since CUDA 12.0; newer devices need newer text
    return Target("gpu", f"sm_{major}{minor}", features, 1, 255, True, "ptx", "ptx")


ARCHITECTURE = Architecture("ptx", (), {}, CodeGeneration("nvptx64-nvidia-cuda", ""))
