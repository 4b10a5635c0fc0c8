import pytest

from cgraph import __version__
from cgraph.cli import main


def test_the_version_is_printed_without_a_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"cgraph {__version__}\n"
