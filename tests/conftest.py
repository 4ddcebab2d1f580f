"""What holds for every test: quiet TensorFlow, no settings from outside, random cases counted."""

from __future__ import annotations

import inspect
import os
import sys
import types
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import settings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

# A hosted run takes the same cases each time, so that it fails for its change alone.
settings.register_profile("here", deadline=None)
settings.register_profile("hosted", deadline=None, derandomize=True, database=None)
settings.load_profile("hosted" if os.environ.get("CI") else "here")

_cases: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what a developer's shell may set and what changes what commands print."""
    outside = ("TFDS_DATA_DIR", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "_SHARDCTL_COMPLETE")
    for name in list(os.environ):
        if name in outside or (name.startswith("SHARDCTL_") and name != "SHARDCTL_FUZZ"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def no_seed_from_another_test() -> None:
    """Undo the tf.random.set_seed of a test that ran before."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        tensorflow.random.set_seed(None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note with each test whether it runs TensorFlow or TFDS; the note goes where its cases go."""
    if isinstance(item, pytest.Function):
        fixtures = (
            definition.func
            for definitions in item._fixtureinfo.name2fixturedefs.values()
            for definition in definitions
        )
        real = any(_imports_tensorflow(function) for function in (item.function, *fixtures))
        item.user_properties.append(("runs_tensorflow", real))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the `cases` that tests record."""
    if report.when == "call":
        real = ("runs_tensorflow", True) in report.user_properties
        for name, value in report.user_properties:
            if name == "cases" and isinstance(value, int):
                _cases["real" if real else "other"] += value


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many random cases were checked, and how many of them beside the real thing."""
    if _cases:
        terminalreporter.write_line(
            f"compared with real TensorFlow and TFDS: {_cases['real']:,} random cases; "
            f"checked without them: {_cases['other']:,}"
        )


def _imports_tensorflow(function: object) -> bool:
    """Return whether a function, or one it calls from its own or another test file, does so."""
    waiting, seen = [inspect.unwrap(function) if callable(function) else function], set[int]()
    while waiting:
        value = waiting.pop()
        if isinstance(value, type):
            waiting += vars(value).values()
        value = getattr(value, "__func__", getattr(value, "__wrapped__", value))
        if not isinstance(value, types.FunctionType) or id(value) in seen:
            continue
        if value.__globals__ is globals():  # what holds for every test
            continue
        seen.add(id(value))
        if not value.__module__.startswith("tests"):
            continue
        for name in _names(value.__code__):
            if name.partition(".")[0] in ("tensorflow", "tensorflow_datasets"):
                return True
            waiting.append(value.__globals__.get(name))
    return False


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names and texts that a function and the functions inside it use."""
    yield from code.co_names
    yield from (text for text in code.co_consts if isinstance(text, str))  # importorskip("...")
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
