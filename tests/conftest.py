"""What holds for every test: quiet TensorFlow, no settings from outside, its random cases."""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
import os
import secrets
import sys
import types
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestItem, DoctestModule
from hypothesis import is_hypothesis_test, seed, settings
from hypothesis.internal.conjecture import providers

from tests.cases import (
    add_cases,
    begin_run,
    begin_test,
    command_for,
    in_this_run,
    seed_of_test,
    taken_counts,
    variable_of_seed,
)
from tests.order.toy_pipelines import Toys, build_toys
from tests.stores.fixtures import faults, gcs, hub, s3, started_gcs, started_s3, web  # noqa: F401  # they start when a test asks for one

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
# With oneDNN, TensorFlow looks through all its kernels for each operation of each function of a
# tf.data pipeline, each time that is iterated: a sixth of its time. No order is of its making.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

# An ordinary run takes the same cases everywhere, so that it fails for its change alone. Hypothesis
# would also draw constants of the package's modules, of those that happen to be loaded.
default = settings.get_profile("default")
settings.register_profile("same", default, deadline=None, derandomize=True, database=None)
settings.load_profile("same")
vars(providers)["is_local_module_file"] = lambda path: False

# One process tests a few files sooner than several do, which each start and collect them. That each
# of several imports TensorFlow costs no time where a processor is idle. Of all tests some wait, for
# a browser or a program, and one process more than there are processors works meanwhile.
FEW_FILES = 5
MANY_FILES = 100

# Tests that run where `-m` names their mark, or the arguments name them one by one.
ON_DEMAND = ("fuzz", "slow")

# The `-m` of a quick run, which leaves out long tests too and takes fewer generated cases.
QUICK = "not tensorflow"

# What a shell may say of fuzz tests.
KEPT = ("SHARDCTL_FUZZ", "SHARDCTL_GOLDEN", "SHARDCTL_PIPELINES", "SHARDCTL_SEED", "SHARDCTL_SLOW")

# One slow or fuzz test in so many is run; the seed of the run chooses which.
SLOW = int(os.environ.get("SHARDCTL_SLOW", "1"))
_SEED = os.environ.get("SHARDCTL_SEED", "").encode()

NAMES_TENSORFLOW = ("no_seed_from_another_test",)  # without a need of it

_cases: Counter[str] = Counter()
_without_tensorflow = set[object]()  # functions that were looked at before


@pytest.fixture(scope="session")
def cache_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that are not there yet, one after the other."""
    parent = tmp_path_factory.mktemp("caches")
    return (parent / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def no_settings_from_outside(
    monkeypatch: pytest.MonkeyPatch, cache_folders: Iterator[Path]
) -> None:
    """Remove what a developer's shell may set and what changes what commands print.

    Each test has a cache folder of its own.
    """
    colors = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")
    outside = ("TFDS_DATA_DIR", *colors, "COLUMNS", "LINES", "_SHARDCTL_COMPLETE")
    for name in list(os.environ):
        if name in outside or (name.startswith("SHARDCTL_") and name not in KEPT):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SHARDCTL_CACHE_DIR", str(next(cache_folders)))


@pytest.fixture(autouse=True)
def no_seed_from_another_test() -> Iterator[None]:
    """Undo the tf.random.set_seed of a test before anything is made for the next."""
    yield
    loaded = sys.modules.get("tensorflow")
    if loaded is not None:
        loaded.random.set_seed(None)


@pytest.fixture(scope="session")
def tf() -> Any:
    """TensorFlow."""
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="session")
def tfds() -> Any:
    """TensorFlow Datasets."""
    return pytest.importorskip("tensorflow_datasets")


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Toys:
    """Small datasets of several kinds, written by TFDS; tests read them and leave them alone."""
    return build_toys(tmp_path_factory.mktemp("toys"))


def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed of a fuzz run that has none; the processes of xdist inherit it."""
    config.pluginmanager.register(_FewDoctests())  # which concerns folders beside this one, too
    fuzz = "fuzz" in config.option.markexpr or _names_tests(config)
    if fuzz and not os.environ.get("SHARDCTL_SEED"):
        os.environ["SHARDCTL_SEED"] = secrets.token_hex(4)
    marked = config.option.markexpr
    begin_run("quick" if marked == QUICK else "whole" if "slow" in marked else "ordinary")
    same = settings.get_profile("same")
    settings.register_profile("this run", same, max_examples=in_this_run(same.max_examples))
    settings.load_profile("this run")


def pytest_report_header() -> str:
    """Say what the cases of fuzz tests follow from."""
    return f"{variable_of_seed()}: the cases of fuzz tests follow from it"


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Let one process run a few files, as many as there are processors more, and one more all."""
    num_processors = yield
    num_files = len(_test_files(config))
    if config.option.collectonly or num_files <= FEW_FILES:
        return 0
    return num_processors + (num_files >= MANY_FILES)


class _FewDoctests:
    """Collects no doctests from files without an example, which are seven of eight."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        found = yield
        if file_path.suffix == ".py" and b">>> " not in file_path.read_bytes():
            found = [one for one in found if not isinstance(one, DoctestModule)]
        return found


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage meanwhile, and never look at what is left: tests and modules."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what runs the real TensorFlow or TFDS; leave out kinds that `-m` does not name."""
    for item in items:
        if _runs_tensorflow(item):
            item.add_marker(pytest.mark.tensorflow)
    marks = {item: {mark.name for mark in item.iter_markers()} for item in items}
    left_out = {kind for kind in ON_DEMAND if kind not in config.option.markexpr}
    left_out |= {"long"} if config.option.markexpr == QUICK else set()
    unwanted = {
        item
        for item in items
        if not left_out.isdisjoint(marks[item])
        or (marks[item] & {*ON_DEMAND} and zlib.crc32(_SEED + item.nodeid.encode()) % SLOW)
    }
    if unwanted and not _names_tests(config):
        config.hook.pytest_deselected(items=[*unwanted])
        items[:] = [item for item in items if item not in unwanted]
    # In one process what needs no TensorFlow comes first, so that a mistake shows in seconds. Of
    # several the first begins with TensorFlow, and where tests are few the others never load it.
    several = hasattr(config, "workerinput")
    items.sort(key=lambda item: "tensorflow" in marks[item], reverse=several)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Give a test its seed; freeze the modules of TensorFlow, too, once a test has loaded it."""
    fuzz = _is_fuzz(item)
    begin_test(item.nodeid, fuzz=fuzz)
    if fuzz and isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
        seed(seed_of_test())(item.obj)
    before = sys.modules.get("tensorflow")
    try:
        return (yield)
    finally:
        if not before and "tensorflow" in sys.modules:
            gc.collect()
            gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note with each test how many cases it checked, those of Hypothesis among them."""
    if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
        law = item.obj.hypothesis
        law.inner_test = _counting(inspect.unwrap(law.inner_test))
    taken_counts()
    try:
        return (yield)
    finally:
        kind = "real" if item.get_closest_marker("tensorflow") else "other"
        num_cases, num_pipelines = taken_counts()
        item.user_properties += [(f"{kind} cases", num_cases), ("pipelines", num_pipelines)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the failure of a fuzz test say how the same cases are tried again."""
    report = yield
    if report.failed and _is_fuzz(item):
        report.sections.append(("the same cases again", command_for(item.nodeid)))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the cases of all tests; those of another process come with its report."""
    if report.when == "call":
        for name, value in report.user_properties:
            if isinstance(value, int):
                _cases[name] += value


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many random cases were checked, how many beside the real thing, and by which seed."""
    if any(_cases.values()):
        terminalreporter.write_line(
            f"compared with real TensorFlow and TFDS: {_cases['real cases']:,} random cases; "
            f"checked without them: {_cases['other cases']:,}"
        )
    if _cases["pipelines"]:
        terminalreporter.write_line(f"whole pipelines among them: {_cases['pipelines']:,}")
    if os.environ.get("SHARDCTL_SEED"):
        terminalreporter.write_line(f"the seed of fuzz tests was {variable_of_seed()}")


def _test_files(config: pytest.Config) -> set[Path]:
    """Return the test modules that the arguments name or that lie below them."""
    paths = {Path(config.invocation_params.dir, arg.partition("::")[0]) for arg in config.args}
    below = {file for path in paths if path.is_dir() for file in path.rglob("test_*.py")}
    return below | {path for path in paths if path.is_file()}


def _is_fuzz(item: pytest.Item) -> bool:
    return item.get_closest_marker("fuzz") is not None


def _names_tests(config: pytest.Config) -> bool:
    """Return whether every argument names one test, which is run then, whatever its marks are."""
    return all("::" in arg for arg in config.args)


def _counting(test: Any) -> Any:
    @functools.wraps(test)
    def counted(*arguments: Any, **named: Any) -> Any:
        add_cases()
        return test(*arguments, **named)

    return counted


def _runs_tensorflow(item: pytest.Item) -> bool:
    """Return whether a test, or a fixture that it takes, imports TensorFlow or TFDS."""
    if not isinstance(item, pytest.Function):
        return isinstance(item, DoctestItem) and item.name.startswith("shardctl.tfds.")
    test = item.obj.hypothesis.inner_test if is_hypothesis_test(item.obj) else item.function
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    functions = (test, *(definition.func for definitions in fixtures for definition in definitions))
    return any(_imports_tensorflow(function) for function in functions)


@functools.cache
def _imports_tensorflow(function: object) -> bool:
    """Return whether a function, or one it calls from its own or another test file, does so."""
    waiting, seen = [inspect.unwrap(function) if callable(function) else function], set[object]()
    while waiting:
        value = waiting.pop()
        if isinstance(value, type) and value not in seen:
            seen.add(value)
            waiting += vars(value).values()
        value = getattr(value, "__func__", getattr(value, "__wrapped__", value))
        if not isinstance(value, types.FunctionType):
            continue
        if value in seen or value in _without_tensorflow:
            continue
        seen.add(value)
        needed = _needed(value)
        if needed is None:
            return True
        waiting += needed
    _without_tensorflow.update(seen)
    return False


@functools.cache
def _needed(function: types.FunctionType) -> list[object] | None:
    """Return what a function of the tests names, and None where TensorFlow is among it."""
    if not function.__module__.startswith("tests") or function.__name__ in NAMES_TENSORFLOW:
        return []
    names = set(_names(function.__code__))
    if any(
        name.partition(".")[0] in ("tensorflow", "tensorflow_datasets", "keras") for name in names
    ):
        return None
    return [function.__globals__[name] for name in names if name in function.__globals__]


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names and texts that a function and the functions inside it use."""
    yield from code.co_names
    yield from (text for text in code.co_consts if isinstance(text, str))  # importorskip("...")
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
