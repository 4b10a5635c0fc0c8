"""Methods of Keras's and PyTorch's models that a `Layer` does not have: an error that says what to use."""

METHODS = {
    "cuda": 'engine="cuda" of nn.train and nn.compile',
    "eval": "nn.compile(model), which infers",
    "evaluate": "nn.compile(model), and compare its results with the targets",
    "fit": "nn.train(model, nn.Loader((samples, targets)))",
    "forward": "model(x); your own class defines build(self, x, mode)",
    "load_state_dict": "nn.load_weights(path, model)",
    "load_weights": "nn.load_weights(path, model)",
    "predict": "nn.compile(model), and call it with samples",
    "save": "nn.save_weights(path, model), or nn.compile(model).function.save(folder)",
    "save_weights": "nn.save_weights(path, model)",
    "state_dict": "model.variables(), or nn.save_weights(path, model)",
    "summary": "nn.summary(model)",
    "train": "nn.train(model, nn.Loader((samples, targets)))",
    "trainable_variables": "model.parameters()",
}
"""Names, and what to use instead."""


def missing_method(kind: str, name: str) -> AttributeError:
    """Return the error for an attribute that a class of layers does not have.

    Parameters
        kind: name of the class
    """
    remedy = f"; use {METHODS[name]}" if name in METHODS else ""
    return AttributeError(f"{kind} has no attribute {name!r}{remedy}")
