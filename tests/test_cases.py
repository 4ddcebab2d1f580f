"""Which random cases tests take: in runs of pytest of their own, of tests that fail."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cases import FUZZ, PIPELINES, begin_run, some_of

pytest_plugins = ("pytester",)

TESTS = Path(__file__).with_name("tiny_tests.txt").read_text("utf-8")


@pytest.fixture
def project(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.Pytester]:
    """A folder with tests of which some of a fuzz run fail, and no seed yet."""
    monkeypatch.setattr("tests.cases._share", [1.0])
    monkeypatch.setattr("tests.conftest.SLOW", 1)
    profile = settings.get_current_profile_name()
    monkeypatch.setenv("SHARDCTL_SEED", "")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makepyfile(test_tiny=TESTS)
    yield pytester
    settings.load_profile(profile)


def run(project: pytest.Pytester, *words: str) -> tuple[str, list[str]]:
    """Run pytest in this process; return what it said and the cases that were taken."""
    result = project.runpytest_inprocess("-p", "tests.conftest", "-pno:cacheprovider", *words)
    file = project.path / "taken"
    cases = file.read_text().splitlines()
    file.unlink()
    return "\n".join(result.outlines), sorted(cases)


@pytest.mark.long
def test_a_fuzz_run_takes_the_cases_of_its_seed_and_says_how_to_try_them_again(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, cases = run(project, "-m", "fuzz")
    (drawn,) = set(re.findall(r"SHARDCTL_SEED=(\w+)", said))
    found = {}
    for seed in (drawn, "it's a seed", "another"):
        monkeypatch.setenv("SHARDCTL_SEED", seed)
        said, found[seed] = run(project, "-m", "fuzz")
        assert f"SHARDCTL_SEED={shlex.quote(seed)}: the cases of fuzz tests" in said
    assert (found[drawn], len(cases)) == (cases, 22)
    tests = {case.rpartition(" ")[0] for case in cases}
    assert len(tests) == 4
    for test in tests:  # each takes others
        assert len({tuple(c for c in of if test in c) for of in found.values()}) == 3
    assert len({case.rpartition(" ")[2] for case in cases if "test_numbers" in case}) == 2
    monkeypatch.setenv("SHARDCTL_SEED", "it's a seed")
    commands = re.findall(
        r"(?m)^SHARDCTL_SEED=.*python -m pytest.*$", run(project, "-m", "fuzz")[0]
    )
    (command,) = (command for command in commands if "it" in command.partition("[")[2])
    before, _, after = command.partition(" python -m pytest ")
    variables = dict(word.split("=") for word in shlex.split(before))
    sizes = {variables.pop("SHARDCTL_FUZZ"), variables.pop("SHARDCTL_PIPELINES", str(FUZZ))}
    assert sizes == {str(FUZZ), str(PIPELINES)}
    assert variables == {"SHARDCTL_SEED": "it's a seed"}
    again = run(project, *shlex.split(after))[1]
    assert again == [case for case in found["it's a seed"] if "[it's]" in case]


@pytest.mark.long
def test_other_runs_take_the_same_cases_everywhere_and_a_quick_one_fewer(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the seed of fuzz tests is, and whatever modules other tests have loaded."""
    _, cases = run(project, "-m", "slow or not slow")
    assert len(cases) == 300
    _, cases = run(project)
    assert len(cases) == 150
    numbers = ", ".join(str(number**7) for number in range(9, 99))
    project.makepyfile(loaded_module=f"NUMBERS = [{numbers}]")
    project.makeini("[pytest]\npythonpath = .")
    project.makepyfile(test_another="import loaded_module")
    monkeypatch.setenv("SHARDCTL_SEED", "another")
    monkeypatch.setenv("CI", "true")
    assert run(project)[1] == cases
    _, cases = run(project, "-m", "not tensorflow")
    of_each = [len([c for c in cases if name in c]) for name in ("_ordinary_law", "_ordinary ")]
    assert (of_each, len(cases)) == ([33, 33], 66)  # long ones are left out
    project.makepyfile(test_tiny=TESTS.replace("taken, 100)", "taken, 9)"))
    assert len(run(project, "-m", "not tensorflow", "-k", "law")[1]) == 8
    assert len(run(project, "-m", "not tensorflow", "test_tiny.py::test_long_law")[1]) == 8
    assert [*some_of(range(40))] == [*range(8), *range(26, 40, 3)]  # a third
    begin_run("whole")
    assert [*some_of(range(40))] == [*range(40)]
