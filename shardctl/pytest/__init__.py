"""The pytest plugin: the fixture `order_snapshot`, `--update-orders`, and what is said at the end.

pytest loads this in every run where shardctl is installed, so it imports nothing; a test that takes
the fixture does.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from shardctl.pytest.checks import OrderSnapshot

_CHECKS = pytest.StashKey["OrderSnapshot"]()
_NARROWED = pytest.StashKey[bool]()
_KEPT = "order_snapshots"  # what a report carries, from one process to another too
_NARROWING = ("keyword", "markexpr", "deselect", "lf", "stepwise")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-orders`."""
    parser.getgroup("shardctl").addoption(
        "--update-orders",
        action="store_true",
        help="accept the orders of today: write the snapshots of order_snapshot.check(..) anew",
    )


@pytest.fixture
def order_snapshot(request: pytest.FixtureRequest) -> OrderSnapshot:
    """Pins the order of a tf.data.Dataset in a file: `order_snapshot.check(make_dataset())`."""
    return _checks(request.node)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Note that not every test of the modules is run."""
    for item in items[:1]:
        item.config.stash[_NARROWED] = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let the report of a test tell which snapshots it used."""
    report = yield
    takes = "order_snapshot" in getattr(item, "fixturenames", ()) or _CHECKS in item.stash
    if takes and (report.when == "call" or report.outcome != "passed"):
        report.order_snapshots = _checks(item).kept() | {"narrowed": _is_narrowed(item.config)}
    return report


def _checks(item: pytest.Item) -> OrderSnapshot:
    """Return what a test gets of the fixture; one that is skipped before gets it here."""
    from shardctl.pytest.checks import OrderSnapshot

    if _CHECKS not in item.stash:
        item.stash[_CHECKS] = OrderSnapshot(
            test_file=item.path,
            test=item.nodeid.partition("::")[2],
            update=item.config.getoption("--update-orders"),
            root=item.config.rootpath,
            here=item.config.invocation_params.dir,
        )
    return item.stash[_CHECKS]


def _is_narrowed(config: pytest.Config) -> bool:
    given = any(config.getoption(name, None) for name in _NARROWING)
    return given or config.stash.get(_NARROWED, False) or any("::" in arg for arg in config.args)


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int) -> None:
    """Say how many snapshots were written, and which ones no test uses any more."""
    reports = [
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if hasattr(report, _KEPT)
    ]
    if reports:
        from shardctl.pytest.checks import summary

        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        for line in summary(
            reports, here=terminalreporter.config.invocation_params.dir, ended=ended
        ):
            terminalreporter.write_line(line)
