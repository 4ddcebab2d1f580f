"""How an order differs from the next pass and from other hosts: lines and records."""

from __future__ import annotations

from typing import Any

from shardctl.planning.quality.quality import Quality


def epochs_line(plan: Quality) -> str:
    """Return how the next pass differs from this one."""
    across = plan.across_epochs
    if across is None:
        return "next pass: its order depends on timing, so there is nothing to compare"
    index = plan.order.settings.pass_index
    first = 0 if across.unit == "epoch" else index
    title = f"from {across.unit} {first} to {across.unit} {first + 1}"
    if across.same_order:
        return f"{title}: the same order"
    text = (
        f"{title}: another order, correlation {across.correlation:.4f} "
        f"(uniform 0, spread {across.spread:.4f})"
    )
    if across.neighbours_kept is None:
        return text
    return (
        f"{text}; neighbours that follow each other again: {across.neighbours_kept:.2%} "
        f"(uniform {across.expected_kept:.4%})"
    )


def hosts_line(plan: Quality) -> str:
    """Return how the orders of the hosts differ, nothing where they are not compared."""
    across = plan.across_hosts
    if across is None:
        return ""
    compared = f"{across.num_hosts:,} hosts"
    if len(across.hosts) < across.num_hosts:
        compared += f", {len(across.hosts)} of them compared"
    coverage = across.coverage
    return (
        f"across {compared}: correlation of their places {across.correlation:.4f} "
        f"(each its own permutation: 0, spread {across.spread:.4f}); their batches together cover "
        f"{coverage.value:.4f} of storage (uniform {coverage.expected:.4f}, "
        f"spread {coverage.spread:.5f}); "
        f"examples read by more than one: {across.shared:.2%}"
    )


def epochs_record(plan: Quality) -> dict[str, Any] | None:
    """Return how the next pass differs, None where its order is open."""
    across = plan.across_epochs
    if across is None:
        return None
    return {
        "unit": across.unit,
        "same_order": across.same_order,
        "correlation": across.correlation,
        "expected": 0.0,
        "spread": across.spread,
        "neighbours_kept": across.neighbours_kept,
        "expected_kept": across.expected_kept,
    }


def hosts_record(plan: Quality) -> dict[str, Any] | None:
    """Return how the orders of the hosts differ, None where they are not compared."""
    across = plan.across_hosts
    if across is None:
        return None
    return {
        "num_hosts": across.num_hosts,
        "hosts": list(across.hosts),
        "correlation": across.correlation,
        "expected": 0.0,
        "spread": across.spread,
        "coverage": across.coverage.value,
        "expected_coverage": across.coverage.expected,
        "coverage_spread": across.coverage.spread,
        "shared": across.shared,
    }
