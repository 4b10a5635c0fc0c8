"""Weights by PyTorch's names: renamed, turned, left out; the same results where torch is installed."""

import numpy as np
import pytest
import safetensors.numpy

import cgraph as cg
import nn
from cgraph.errors import FormatError
from nn.torch_weights import by_prefix, nearest, rename_arrays
from tests.nn.support import draw
from tests.support.tolerance import assert_near


class Block(nn.Layer):
    """Every kind of layer whose Parameters have other names or another order in PyTorch."""

    def __init__(self) -> None:
        self.hold(
            conv=nn.Conv2d(3, 8, 3, pad=1),
            norms=(nn.BatchNorm(8), nn.GroupNorm(2, 8)),
            up=nn.TransposeConv2d(8, 4, 2, stride=2),
            lstm=nn.LSTM(8, 5, sequence=True),
            gru=nn.GRU(5, 6, sequence=True),
            mix=nn.MultiHeadAttention(6, 2),
            layer=nn.LayerNorm(6),
            rms=nn.RMSNorm(6, eps=1e-5),
            last=nn.Linear(6, 3),
            symbols=nn.Embedding(3, 6),
        )

    def build(self, *xs, mode):
        y = self.norms[1](self.norms[0](self.conv(xs[0], mode=mode), mode=mode), mode=mode)
        y = cg.reshape(cg.transpose(self.up(y, mode=mode), (0, 2, 3, 1)), (2, -1, 8))
        y = self.layer(self.mix(self.gru(self.lstm(y, mode=mode), mode=mode), mode=mode), mode=mode)
        return self.last(self.rms(y, mode=mode), mode=mode) + cg.sum(self.symbols.weight)


def torch_block(torch):
    class Theirs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.up = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ConvTranspose2d(8, 4, 2, stride=2)
            self.norms = torch.nn.ModuleList([torch.nn.BatchNorm2d(8), torch.nn.GroupNorm(2, 8)])
            self.lstm, self.gru = (torch.nn.LSTM(8, 5, batch_first=True), torch.nn.GRU(5, 6, batch_first=True))
            self.mix, self.layer = torch.nn.MultiheadAttention(6, 2, batch_first=True), torch.nn.LayerNorm(6)
            self.rms, self.fc = torch.nn.RMSNorm(6, eps=1e-5), torch.nn.Linear(6, 3)
            self.symbols = torch.nn.Embedding(3, 6)

        def forward(self, x):
            y = self.up(self.norms[1](self.norms[0](self.conv(x))))
            y, _ = self.gru(self.lstm(y.permute(0, 2, 3, 1).reshape(2, -1, 8))[0])
            y = self.layer(self.mix(y, y, y)[0])
            return self.fc(self.rms(y)) + self.symbols.weight.sum()

    return Theirs()


def test_every_kind_of_layer_gives_what_torch_gives(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.manual_seed(0)
    theirs = torch_block(torch).eval()
    for x in (*theirs.parameters(), theirs.norms[0].running_mean):
        torch.nn.init.normal_(x)
    torch.save(theirs.state_dict(), tmp_path / "block.pt")
    ours = nn.load_torch(Block(), tmp_path / "block.pt", {"fc": "last"})
    x = draw(2, 3, 4, 4)
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(x)).numpy()
    found = nn.compile(ours, 2, [nn.Sample((3, 4, 4))], engine="reference")(x)
    assert_near(found, wanted, "float32 weights of others")


def torch_arrays(inputs=4, outputs=3):
    return {"head.weight": draw(outputs, inputs), "head.bias": draw(outputs), "head.num_batches_tracked": np.ones(())}


def written(folder, arrays):
    path = folder / "weights.safetensors"
    path.write_bytes(safetensors.numpy.save({name: np.ascontiguousarray(x) for name, x in arrays.items()}))
    return path


class Headed(nn.Layer):
    def __init__(self) -> None:
        self.hold(head=nn.Linear(4, 3))


@pytest.mark.parametrize(
    "rename",
    [
        {"module": "", "module.old": "head"},
        {"": "", "module.old.weight": "head.weight", "module.old.bias": "head.bias"},
        lambda name: name.replace("module.old", "head"),
    ],
    ids=["longest prefix", "whole names", "function"],
)
def test_names_are_changed(tmp_path, rename):
    arrays = torch_arrays()
    path = written(tmp_path, {name.replace("head", "module.old"): x for name, x in arrays.items()})
    head = nn.load_torch(Headed(), path, rename).head
    np.testing.assert_array_equal(head.weight.value, arrays["head.weight"].T)
    np.testing.assert_array_equal(head.bias.value, arrays["head.bias"])


@pytest.mark.parametrize(("name", "rename", "want"), [
    ("a.b.c", {}, "a.b.c"), ("a.b.c", {"a": "x"}, "x.b.c"), ("a.b.c", {"a": "x", "a.b": "y"}, "y.c"),
    ("a.b.c", {"a.b.c": "y.z", "a.b": "x"}, "y.z"), ("ab.c", {"a": "x"}, "ab.c"), ("a.b", {"b": "x"}, "a.b"),
    ("a.b.c", {"a": ""}, "b.c"), ("a.b.c", {"a.b": ""}, "c"), ("a.b", {"": "x"}, "x.a.b"), ("a.b", {"": ""}, "a.b"),
    ("a.b", {"a": None}, None), ("a.b", {"": None}, None), ("a.b", {"a": None, "a.b": "x"}, "x"),
    ("a.b", {"": "x", "a": None}, None),
])  # fmt: skip
def test_the_longest_prefix_is_replaced_up_to_a_dot(name, rename, want):
    assert by_prefix(name, rename) == want


def test_what_becomes_none_is_left_out(tmp_path):
    path = written(tmp_path, torch_arrays() | {"other.weight": draw(2)})
    with pytest.raises(FormatError, match=r"no layer reads other\.weight\. Map these names with rename="):
        nn.load_torch(Headed(), path)
    nn.load_torch(Headed(), path, {"other": None})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda arrays: arrays | {"head.weight": draw(3, 5)}, r"head\.weight has shape \[5, 3\], the model's \[4, 3\]"),
        (lambda arrays: {"heads.weight": draw(3, 4)}, r"has no head\.weight; it has heads\.weight"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_assigned(tmp_path, change, said):
    model = Headed()
    with pytest.raises(FormatError, match=said):
        nn.load_torch(model, written(tmp_path, change(torch_arrays())))
    assert not any(x.is_assigned for x in model.variables().values())


def test_two_arrays_of_one_name_are_refused(tmp_path):
    path = written(tmp_path, torch_arrays() | {"neck.weight": draw(3, 4)})
    with pytest.raises(FormatError, match="is the second array that rename= maps to"):
        nn.load_torch(Headed(), path, {"neck": "head"})


@pytest.mark.parametrize(("names", "told"), [
    ([], ""), (["xyz"], "; it has xyz"), (["q1", "q2", "q3"], "; it has q1 and q2"),
    (["q1", "head.weights"], "; it has head.weights"),
    (["head.w", "heads.weight", "head.weights", "head.weight_"], "; it has heads.weight and head.weights"),
])  # fmt: skip
def test_at_most_two_names_are_told_the_most_similar_or_the_first(names, told):
    assert nearest("head.weight", dict.fromkeys(names)) == told


@pytest.mark.parametrize(("count", "told"), [(1, "z0"), (3, "z0, z1, z2"), (4, "z0, z1, z2 …")])
def test_of_arrays_that_no_layer_reads_three_are_named(count, told, tmp_path):
    path = written(tmp_path, torch_arrays() | {f"z{i}": draw(2) for i in reversed(range(count))})
    with pytest.raises(FormatError, match=f"no layer reads {told}\\. Map these names"):
        nn.load_torch(Headed(), path)


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_two_arrays_of_one_name_are_refused_in_either_order(names):
    arrays = {name: np.ones(2) for name in names}
    with pytest.raises(FormatError) as error:
        rename_arrays(arrays, {"b": "a"}, "a file")
    assert str(error.value) == (
        f"a file: {names[1]} is the second array that rename= maps to a. Map it to another name, or to None."
    )
    assert list(rename_arrays(arrays, {"b": None}, "a file")) == ["a"]


@pytest.mark.parametrize("prefix", ["", "norm.", "a.b."])
def test_counters_of_batches_are_left_out_at_any_depth(prefix):
    arrays = {f"{prefix}num_batches_tracked": np.zeros(()), f"{prefix}weight": np.ones(2)}
    assert list(rename_arrays(arrays, None, "a file")) == [f"{prefix}weight"]
    assert list(rename_arrays(arrays, lambda name: f"x.{name}", "a file")) == [f"x.{prefix}weight"]
