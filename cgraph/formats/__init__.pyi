"""The public names of cgraph.formats. Written by `python -m docs.generate`."""

from cgraph.formats import darknet as darknet
from cgraph.formats import deep_compression as deep_compression
from cgraph.formats import keras_h5 as keras_h5
from cgraph.formats import npz as npz
from cgraph.formats import onnx as onnx
from cgraph.formats import safetensors as safetensors
from cgraph.formats import tflite as tflite
from cgraph.formats import torch_file as torch_file
