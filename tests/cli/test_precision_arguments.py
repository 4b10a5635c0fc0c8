"""Arguments about precision: what they allow, and which options of `compile` they become."""

import argparse

import pytest

from cgraph.cli.precision_arguments import add_precision, precision_options
from cgraph.dtypes.storage import BY_NAME


@pytest.fixture
def parser():
    parser = argparse.ArgumentParser()
    add_precision(parser)
    return parser


def test_what_is_not_asked_for_is_no_option(parser):
    assert precision_options(parser.parse_args([])) == {}
    assert precision_options(parser.parse_args(["--precision", "bf16"])) == {"precision": "bf16"}


@pytest.mark.parametrize("name", BY_NAME)
def test_every_storage_dtype_is_one_of_weights(parser, name):
    args = parser.parse_args(["--weights-dtype", name, "--precision", "bf16"])
    assert precision_options(args) == {"weights_dtype": name, "precision": "bf16"}


@pytest.mark.parametrize("words", [["--weights-dtype", "float64"], ["--precision", "float16"], ["--precision"]])
def test_other_names_are_refused(parser, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        parser.parse_args(words)
    assert stopped.value.code == 2 and words[0] in capsys.readouterr().err
