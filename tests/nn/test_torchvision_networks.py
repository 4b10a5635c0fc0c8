"""Networks for classes with torchvision's weights give its scores. Needs torch and torchvision for all but refusals."""

import numpy as np
import pytest

import nn
from cgraph import FormatError
from nn.models.torch_names import torchvision_arrays
from tests.support import torchvision as oracle
from tests.support.tolerance import assert_near

OPTIONS = {"inception_v3": {"aux_logits": True, "init_weights": False}}
NAMES = "resnet18 vgg16 squeezenet1_0 squeezenet1_1 densenet121 mobilenet_v2 inception_v3".split()


def theirs(name: str):
    torch = pytest.importorskip("torch")
    try:
        models = oracle.load().models
    except ImportError as error:
        pytest.skip(str(error))
    torch.manual_seed(0)
    model = getattr(models, name)(**OPTIONS.get(name, {})).eval()
    for path, x in model.named_buffers():
        if path.endswith("running_mean"):
            x.normal_(0, 0.1)
        if path.endswith("running_var"):
            x.uniform_(0.5, 1.5)
    return torch, model


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_scores_are_torchvisions(name):
    torch, wanted = theirs(name)
    has_form = name in ("mobilenet_v2", "inception_v3")
    model = getattr(nn.models, name)(None, **({"torch": True} if has_form else {}))
    nn.set_values(model, torchvision_arrays({path: x.numpy() for path, x in wanted.state_dict().items()}, model))
    image = np.random.default_rng(0).normal(size=(1, *model.samples[0].shape)).astype("float32")
    with torch.inference_mode():
        want = wanted(torch.from_numpy(image))
        want = (torch.softmax(want, 1) if has_form else want).numpy()
    assert_near(nn.compile(model)(image), want, "float32 networks by their largest")


def arrays_of(model):
    """The model's arrays as torch has them, in its order, with what only training reads."""
    found = {f"{i}.weight": x.value.T if x.ndim == 2 else x.value for i, x in enumerate(model.variables().values())}
    return found | {"0.num_batches_tracked": np.zeros((), np.int64)}


def test_a_file_of_another_network_is_refused():
    model = nn.models.squeezenet1_1("zeros", classes=3)
    arrays = arrays_of(model)
    assert torchvision_arrays(arrays, model).keys() == model.variables().keys()
    with pytest.raises(FormatError, match="the file has 51 arrays, the network 52"):
        torchvision_arrays({name: x for name, x in arrays.items() if name != "3.weight"}, model)
    arrays["0.weight"] = np.zeros((64, 3, 5, 5), "float32")
    with pytest.raises(FormatError, match=r"0.weight has shape \[64, 3, 5, 5\]"):
        torchvision_arrays(arrays, model)
