"""Which random cases tests take: in runs of pytest of their own, of tests that fail."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cases import FUZZ, PIPELINES, begin_run, some_of

pytest_plugins = ("pytester",)

TESTS = """\
import importlib
import os

import pytest
from hypothesis import given, settings, strategies as st

from tests.cases import check_cases, random_of_a_fuzz_run


def taken(case):
    with open("taken", "a") as file:
        print(os.environ["PYTEST_CURRENT_TEST"], case, file=file)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", ["an id", "it's"])
def test_numbers(name):
    taken(random_of_a_fuzz_run().random())
    raise ValueError


@pytest.mark.fuzz
def test_law():
    check_cases(st.integers(), taken, 10, fuzz=True)
    raise ValueError


@pytest.mark.fuzz
@settings(max_examples=10)
@given(st.integers())
def test_given(case):
    taken(case)


@given(st.integers())
def test_ordinary(case):
    taken(case)


def test_ordinary_law():
    check_cases(st.integers(), taken, 100)
"""


@pytest.fixture
def project(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.Pytester]:
    """A folder with tests of which those of a fuzz run fail, and no seed yet."""
    monkeypatch.setattr("tests.cases._share", [1.0])
    profile = settings.get_current_profile_name()
    monkeypatch.setenv("SHARDCTL_SEED", "")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makepyfile(test_tiny=TESTS)
    yield pytester
    settings.load_profile(profile)


def run(project: pytest.Pytester, *words: str) -> tuple[str, list[str]]:
    """Run pytest in this process; return what it said and the cases that were taken."""
    result = project.runpytest_inprocess("-p", "tests.conftest", "-pno:cacheprovider", *words)
    return "\n".join(result.outlines), taken(project)


def taken(project: pytest.Pytester) -> list[str]:
    file = project.path / "taken"
    cases = file.read_text().splitlines()
    file.unlink()
    return sorted(cases)


def with_seed(patch: pytest.MonkeyPatch, project: pytest.Pytester, seed: str) -> list[str]:
    patch.setenv("SHARDCTL_SEED", seed)
    said, cases = run(project, "-m", "fuzz")
    assert f"SHARDCTL_SEED={shlex.quote(seed)}: the cases of fuzz tests" in said
    assert len(cases) == 22
    return cases


@pytest.mark.long
def test_a_fuzz_run_takes_the_cases_of_its_seed(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_one = with_seed(monkeypatch, project, "one")
    assert with_seed(monkeypatch, project, "one") == of_one
    of_another = with_seed(monkeypatch, project, "another seed")
    tests = {case.rpartition(" ")[0] for case in of_one}
    assert len(tests) == 4
    for test in tests:  # each takes others
        assert {c for c in of_one if test in c} != {c for c in of_another if test in c}
    numbers = {case.rpartition(" ")[2] for case in of_one if "test_numbers" in case}
    assert len(numbers) == 2  # each test, too


@pytest.mark.long
def test_a_fuzz_run_without_a_seed_draws_one_and_says_it(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, cases = run(project, "-m", "fuzz", "-q")
    (seed,) = set(re.findall(r"SHARDCTL_SEED=(\w+)", said))
    assert with_seed(monkeypatch, project, seed) == cases
    monkeypatch.setenv("SHARDCTL_SEED", "")
    assert run(project, "-m", "fuzz")[1] != cases


def failing(project: pytest.Pytester, patch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    """Return the command that the failure of one test says, and the cases it took."""
    patch.setenv("SHARDCTL_SEED", "it's a seed")
    said, cases = run(project, "-m", "fuzz")
    commands = re.findall(r"(?m)^SHARDCTL_SEED=.*python -m pytest.*$", said)
    assert len(commands) == 3
    (command,) = (command for command in commands if "it" in command.partition("[")[2])
    patch.delenv("SHARDCTL_SEED")
    return command, [case for case in cases if "[it's]" in case]


@pytest.mark.long
def test_a_failure_says_how_the_same_cases_are_tried_again(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, cases = failing(project, monkeypatch)
    before, _, after = command.partition(" python -m pytest ")
    variables = dict(word.split("=") for word in shlex.split(before))
    assert variables.pop("SHARDCTL_FUZZ") == str(FUZZ)
    assert int(variables.pop("SHARDCTL_PIPELINES", FUZZ)) == PIPELINES
    monkeypatch.setenv("SHARDCTL_SEED", variables.pop("SHARDCTL_SEED"))
    assert run(project, *shlex.split(after))[1] == cases
    assert not variables


@pytest.mark.slow
def test_a_shell_tries_the_same_cases_in_processes_of_xdist(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, cases = failing(project, monkeypatch)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p tests.conftest -n2 -pno:cacheprovider")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    project.run("sh", "-c", command)
    assert taken(project) == cases


@pytest.mark.long
def test_an_ordinary_run_takes_the_same_cases_everywhere(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the seed of fuzz tests is, and whatever modules other tests have loaded."""
    _, cases = run(project)
    assert len(cases) == 200
    numbers = ", ".join(str(number**7) for number in range(9, 99))
    project.makepyfile(loaded_module=f"NUMBERS = [{numbers}]")
    project.makeini("[pytest]\npythonpath = .")
    project.makepyfile(test_another="import loaded_module")
    monkeypatch.setenv("SHARDCTL_SEED", "another")
    monkeypatch.setenv("CI", "true")
    assert run(project)[1] == cases


@pytest.mark.long
def test_a_quick_run_takes_fewer_of_them_and_all_of_a_few(project: pytest.Pytester) -> None:
    _, cases = run(project, "-m", "not tensorflow")
    assert len([case for case in cases if "test_ordinary_law" in case]) == 33
    assert len([case for case in cases if "test_ordinary " in case]) == 33
    project.makepyfile(test_tiny=TESTS.replace("taken, 100)", "taken, 9)"))
    _, cases = run(project, "-m", "not tensorflow", "-k", "law")
    assert len(cases) == 8
    assert len(run(project)[1]) == 109
    assert [*some_of(range(40))] == [*range(40)]
    begin_run(quick=True)
    assert [*some_of(range(40))] == [*range(8), *range(26, 40, 3)]  # a third


def test_a_quick_run_leaves_out_long_tests(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_tiny="import pytest\n@pytest.mark.long\ndef test_long(): pass\ndef test_short(): pass"
    )
    for words, names in (
        (["-m", "not tensorflow"], ["test_short"]),
        (["-m", "not tensorflow", "test_tiny.py::test_long"], ["test_long"]),
        (["-m", "not slow"], ["test_long", "test_short"]),
        ([], ["test_long", "test_short"]),
    ):
        said = project.runpytest_inprocess("-p", "tests.conftest", "-v", *words).outlines
        assert [name for name in names if any(f"::{name} PASSED" in line for line in said)] == names
        assert len([line for line in said if "PASSED" in line]) == len(names)
