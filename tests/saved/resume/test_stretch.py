"""A stretch has as many hosts as counts."""

from __future__ import annotations

from shardctl.saved.resume_plan import RunSegment


def test_it_has_as_many_hosts_as_counts() -> None:
    assert RunSegment(consumed=(4, 0, 4)).num_hosts == 3
    assert RunSegment(consumed=(4,), alone=True).num_hosts == 1
