"""The same dataset through every loader that people use."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.text import counted, first_upper
from shardctl.planning.quality.loaders.compare import LoaderComparison
from shardctl.planning.report.report import Report
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.pictures.quality.loaders import loaders_pictures
from shardctl.rendering.quality.loaders import going_on_cells, mixing_cells, mixing_legend
from shardctl.rendering.report.elements import (
    Section,
    figures,
    items,
    name,
    not_shown,
    paragraph,
    plain,
    sentence,
    table,
)


def loaders_section(report: Report) -> Section | None:
    """Return the loaders side by side, None where they were not asked for."""
    loaders = report.loaders
    if loaders is None:
        return None
    body = not_shown(loaders) if isinstance(loaders, NotShown) else "".join(_body(loaders))
    return Section(anchor="loaders", title="How would other loaders read it?", body=body)


def _body(plan: LoaderComparison) -> Iterator[str]:
    hosts = "" if plan.num_hosts == 1 else f", {counted(plan.num_hosts, 'host')}"
    yield paragraph(
        f"{counted(plan.num_examples, 'example')} in {counted(plan.num_shards, 'shard')}, "
        f"batches of {plan.batch:,}{hosts}.",
        "lead",
    )
    yield figures(loaders_pictures(plan))
    if any(way.refused is None for way in plan.ways):
        yield table("How each way mixes, and how it ends", *mixing_cells(plan))
        yield paragraph(f"{plain(first_upper(mixing_legend(plan)))}.", "quiet")
        yield table("How each way goes on after a stop", *going_on_cells(plan), kind="said")
    refused = [way for way in plan.ways if way.refused is not None]
    if refused:
        yield "<h3>Not read so</h3>\n"
        yield items(f"{name(way.reader)}: {sentence(way.refused)}" for way in refused)
