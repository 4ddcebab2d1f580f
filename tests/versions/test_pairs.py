"""Which pairs of Python and TensorFlow are tried, and how their results are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.base.tfds_rules import LINES
from tests.versions import __main__ as program
from tests.versions.pairs import QUICK, ROOT, Pair, counted_tests

BY_NAME = {line.name: line for line in LINES}

RESULTS = """
<testsuites><testsuite>
  <testcase classname="tests.a" name="test_good" time="1"/>
  <testcase classname="tests.a" name="test_good_too" time="1"/>
  <testcase classname="tests.a" name="test_left_out"><skipped message="no moto"/></testcase>
  <testcase classname="tests.a" name="test_bad"><failure message="assert 1 == 2&#10; more"/>
    <error message="at teardown"/></testcase>
  <testcase classname="tests.b" name="test_worse"><error message="at setup"/></testcase>
</testsuite></testsuites>
"""


@pytest.mark.parametrize(
    ("here", "pythons"), [("3.11 3.12 3.13", ["3.12", "3.13"]), ("3.11", ["3.11"] * 2)]
)
def test_a_line_goes_with_its_newest_python_here_where_none_is_named(
    here: str, pythons: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {python: f"/bin/python{python}" for python in here.split()}
    monkeypatch.setattr(program, "interpreter", paths.get)
    assert [pair.python for pair in program.pairs(["2.18", "2.21"], None)] == pythons
    assert len(list(program.pairs([], ["3.11", "3.12"]))) == 2 * len(LINES)


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
    found = counted_tests(tmp_path / "results.xml", versions={}, verified="3 of 3", problems=())
    assert (found.num_passed, found.num_failed, found.skipped) == (2, 2, {"no moto": 1})
    assert found.failures == ("tests.a::test_bad: assert 1 == 2", "tests.b::test_worse: at setup")
    assert not found.is_good
    pair = Pair(python="3.11", line=BY_NAME["2.16"])
    cells = program.cells(pair, found)
    assert len(cells) == len(program.TITLES)
    assert cells[-4:] == ("2", "2", "1", "3 of 3")


def test_the_quick_tests_are_there() -> None:
    assert [path for path in QUICK if not (ROOT / path).is_file()] == []
