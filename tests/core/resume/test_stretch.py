"""A stretch has as many hosts as counts."""

from __future__ import annotations

from shardctl.core.resume.resume_plan import Stretch


def test_it_has_as_many_hosts_as_counts() -> None:
    assert Stretch(consumed=(4, 0, 4)).num_hosts == 3
    assert Stretch(consumed=(4,), alone=True).num_hosts == 1
