"""Which pairs of Python and TensorFlow are tried, and how their results are read."""

from __future__ import annotations

import pytest

from tests.versions import __main__ as program

LOG = "FAILED a.py::test_bad - assert 1 == 2\nERROR b.py::test_worse - at setup\n"
LAST = "1 failed, 1002 passed, 2 skipped, 5 warnings, 1 error in 2.01s"


@pytest.mark.long
def test_a_pair_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--python", "3.13", "2.18"]) == 1  # nothing was tried
    assert capsys.readouterr().out.splitlines()[0] == (
        "Python 3.13, TensorFlow 2.18: TensorFlow 2.18 is published for Python 3.11 and 3.12"
    )
    with pytest.raises(SystemExit):
        program.main(["1.15"])
    assert "no line 1.15; there are 2.16, " in capsys.readouterr().err


def test_results_are_counted_and_failures_named() -> None:
    assert program.counted(LOG + LAST) == (["1,002", "1", "1", "2"], LOG.splitlines())
    assert program.counted("89 passed in 3s") == (["89", "0", "0", "0"], [])


def test_the_quick_tests_are_there() -> None:
    assert [path for path in program.QUICK if not (program.ROOT / path).is_file()] == []
