"""Networks for classes with torchvision's weights give its scores. Needs torch and torchvision."""

import numpy as np
import pytest

import nn
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
