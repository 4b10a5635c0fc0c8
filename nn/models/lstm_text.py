"""A character model: embedding, LSTM, and scores of the next character. After Owl's example lazy_lstm."""

from nn.layer import Weights, initialise
from nn.layers.container import Sequential
from nn.layers.embedding import Embedding
from nn.layers.linear import Linear
from nn.layers.recurrent import LSTM
from nn.layers.shape import Input


def lstm_text(
    weights: Weights = 0, vocabulary: int = 128, length: int = 100, features: int = 16, units: int = 128
) -> Sequential:
    """Return the model: characters ``int32[n, length]`` to scores (logits) of the next ``[n, vocabulary]``."""
    parts = (Embedding(vocabulary, features), LSTM(features, units), Linear(units, vocabulary))
    return initialise(Sequential(Input((length,), "int32"), *parts), weights)
