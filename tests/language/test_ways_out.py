"""Ways out that error messages name: applied as the message says, the call succeeds."""

import re
import zipfile

import numpy as np
import pytest

import cgraph as cg
from cgraph.dist.tree import check_shards
from cgraph.ir.graph import Op, apply
from cgraph.memory.files import read_problem

X = np.float32([1.5, 2.5, 3.5])


class Halved(Op):
    """An op without a kernel and without a gradient."""

    def infer(self, x):
        return x

    def meaning(self, x):
        return x / 2


def refused(kind: type[Exception], advice: str):
    """Return a context in which an error of this kind names `advice`, word for word."""
    return pytest.raises(kind, match=re.escape(advice))


def test_stop_gradient_leaves_out_an_op_without_a_gradient():
    x = cg.Var((3,), name="x")
    for y in (x // 2, apply(Halved(), x)):
        with refused(cg.NoGradientError, "Apply cg.stop_gradient to its result"):
            cg.gradient(cg.sum(y * x), x)
        gradient = cg.gradient(cg.sum(cg.stop_gradient(y) * x), x)
        values = cg.compile([gradient, y], [x], engine="reference")(X)
        np.testing.assert_array_equal(*values)


def test_the_reference_engine_runs_an_op_without_a_kernel():
    x = cg.Var((3,), name="x")
    with refused(cg.NoKernelError, "Pass engine='reference'"):
        cg.compile(apply(Halved(), x), [x])
    np.testing.assert_array_equal(cg.compile(apply(Halved(), x), [x], engine="reference")(X), X / 2)


def test_the_strategy_auto_replaces_one_whose_plan_is_wrong():
    def all_at_zero(problem):
        return cg.Plan((0,) * len(problem.operands), max(x.nbytes for x in problem.operands), "all_at_zero")

    x = cg.Var((64, 64), name="x")
    y = cg.matmul(x, x) + cg.matmul(x, x.T) @ x
    with refused(cg.PlanError, "Correct the memory strategy all_at_zero, or pass memory='auto'"):
        cg.compile(y, [x], memory=all_at_zero)
    assert cg.compile(y, [x], memory="auto")(np.eye(64, dtype="f4")).trace() == 128


def test_arguments_of_transforms():
    def double(x, n):
        return x * n

    with refused(cg.ArgumentError, "Use 0 to 1"):
        cg.jit(double, static_argnums=2)
    with refused(cg.ArgumentError, "Use one of x, n"):
        cg.jit(double, static_argnames="m")
    for options in ({"static_argnums": 1}, {"static_argnames": "n"}):
        np.testing.assert_array_equal(cg.jit(double, **options)(X, 2), X * 2)
    loss = cg.grad(lambda x, y: (x * y).sum(), argnums=1)
    with refused(cg.ArgumentError, "Pass this one by position, too"):
        loss(X, y=X + 1)
    np.testing.assert_array_equal(loss(X, X + 1), X)
    with refused(cg.GraphError, "Return (value, others)"):
        cg.grad(lambda x: x.sum(), has_aux=True)(X)
    gradient, _ = cg.grad(lambda x: (x.sum(), x * 2), has_aux=True)(X)
    np.testing.assert_array_equal(gradient, np.ones(3))


@pytest.mark.parametrize("shards", [-1, 0, 3, 6, 12])
def test_the_number_of_shards_in_the_message_is_accepted(shards):
    with pytest.raises(cg.InputError, match=r"Pass shards=\d+") as refusal:
        check_shards(shards, 64)
    check_shards(int(re.findall(r"shards=(\d+)", str(refusal.value))[0]), 64)


def test_files_written_as_the_message_says_are_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("notes.txt", "x")
    with refused(cg.FormatError, "Write the archive with np.savez"):
        cg.formats.npz.read_npz(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", x=X)
    np.testing.assert_array_equal(cg.formats.npz.read_npz(tmp_path / "a.npz")["x"], X)

    path, v = tmp_path / "a.safetensors", cg.Var((3,), name="v").assign(X)
    for content in (b"text", b"text of many more bytes"):
        path.write_bytes(content)
        with pytest.raises(cg.FormatError, match="safetensors|damaged"):
            cg.formats.safetensors.read_safetensors(path)
    cg.compile(v * 2).save_state(path)
    np.testing.assert_array_equal(cg.formats.safetensors.read_safetensors(path)["v"], X)


def test_the_header_in_the_message_is_one_of_a_problem(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(cg.FormatError, match="Write id,") as refusal:
        read_problem(path)
    for header in re.findall(r"id,\S+", str(refusal.value)):
        path.write_text(f"{header}\n0,1,3,64\n")
        assert len(read_problem(path).operands) == 1
