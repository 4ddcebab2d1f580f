"""The pytest plugin: the fixture `order_snapshot`, `--update-orders`, and what is said at the end.

pytest loads this in every run where shardctl is installed, so it imports nothing; a test that takes
the fixture does.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from shardctl.pytest.checks import OrderSnapshot

_CHECKS = pytest.StashKey["OrderSnapshot"]()


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
    from shardctl.pytest.checks import OrderSnapshot

    checks = OrderSnapshot(
        test_file=request.node.path,
        test=request.node.nodeid.partition("::")[2],
        update=request.config.getoption("--update-orders"),
        root=request.config.rootpath,
        here=request.config.invocation_params.dir,
    )
    request.node.stash[_CHECKS] = checks
    return checks


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let the report of a test tell which snapshots it wrote, from one process to another too."""
    # With pytest-xdist the report travels between processes, and the stash does not.
    report = yield
    if _CHECKS in item.stash:
        report.order_snapshots = item.stash[_CHECKS].written
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which snapshots were written."""
    reports = [report for some in terminalreporter.stats.values() for report in some]
    written = {path for one in reports for path in getattr(one, "order_snapshots", ())}
    if written:
        from shardctl.base.text import counted

        terminalreporter.write_line(f"{counted(len(written), 'order snapshot')} written:")
        for path in sorted(written):
            terminalreporter.write_line(f"  {path}")
