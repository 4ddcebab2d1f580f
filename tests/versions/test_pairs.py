"""Which pairs of Python and TensorFlow are tried, and how their results are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.base.tfds_rules import LINES
from tests.versions import __main__ as program
from tests.versions.pairs import QUICK, ROOT, Pair, counted_tests

BY_NAME = {line.name: line for line in LINES}

RESULTS = '<testsuites><testsuite tests="6" failures="1" errors="1" skipped="2"/></testsuites>'
LOG = "FAILED a.py::test_bad - assert 1 == 2\nERROR b.py::test_worse - at setup\n2 failed\n"


@pytest.mark.long
def test_a_pair_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert Pair(python="3.13", line=BY_NAME["2.21"]).why_not is None
    assert program.main(["--python", "3.13", "2.18"]) == 1  # nothing was tried
    assert capsys.readouterr().out.splitlines()[0] == (
        "Python 3.13, TensorFlow 2.18: TensorFlow 2.18 is published for Python 3.11 and 3.12"
    )
    with pytest.raises(SystemExit):
        program.main(["1.15"])
    assert "no line 1.15; there are 2.16, " in capsys.readouterr().err


def test_results_are_counted_and_failures_named(tmp_path: Path) -> None:
    (tmp_path / "results.xml").write_text(RESULTS)
    results = tmp_path / "results.xml"
    found = counted_tests(results, LOG, versions={}, verified="3 of 3", problems=())
    assert (found.num_passed, found.num_failed, found.num_skipped) == (2, 2, 2)
    assert found.failures == tuple(LOG.splitlines()[:2])
    assert not found.is_good
    pair = Pair(python="3.11", line=BY_NAME["2.16"])
    cells = program.cells(pair, found)
    assert len(cells) == len(program.TITLES)
    assert cells[-4:] == ("2", "2", "2", "3 of 3")


def test_the_quick_tests_are_there() -> None:
    assert [path for path in QUICK if not (ROOT / path).is_file()] == []
