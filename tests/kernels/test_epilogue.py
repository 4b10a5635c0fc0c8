"""The epilogue of a convolution: bias, residual and activation go to the kernels that take them."""

import pytest

from cgraph.kernels.activation.calls import NONE, RELU
from cgraph.kernels.conv.epilogue import NO_EPILOGUE, Epilogue
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.blocked_views import BlockedView


def test_an_epilogue_has_no_bias_no_residual_and_no_activation_unless_told():
    assert (NO_EPILOGUE.bias, NO_EPILOGUE.residual, NO_EPILOGUE.activation) == (None, None, NONE)
    assert NO_EPILOGUE.without_residual() == (None, NONE)


def test_bias_and_activation_come_back_in_this_order():
    bias = Pointer("bias", 64)
    assert Epilogue(bias, activation=RELU).without_residual() == (bias, RELU)


def test_a_residual_is_refused_and_not_dropped():
    residual = BlockedView(Pointer("residual"), 1, 8, 2, 2, 8)
    with pytest.raises(ValueError, match="adds no residual. Add it with an op of its own"):
        Epilogue(Pointer("bias"), residual, RELU).without_residual()
