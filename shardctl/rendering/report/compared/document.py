"""Two pipelines side by side, as a document: each as the commands write it, and where they part."""

from __future__ import annotations

from dataclasses import asdict

from shardctl.files.documents import Document
from shardctl.files.head import kind_head
from shardctl.planning.report.compare import ReportComparison
from shardctl.planning.report.compared_side import ComparedSide
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.diff.diff import cause_record, diff_document
from shardctl.rendering.eval import eval_document
from shardctl.rendering.hosts.hosts import hosts_document
from shardctl.rendering.quality.quality import quality_document
from shardctl.rendering.report.document import part_document, shard_map_document
from shardctl.rendering.text.command_line import as_options


def comparison_document(comparison: ReportComparison) -> Document:
    """Return the document: of kind `report`, with both under `compared`.

    What cannot be had says why; `equal` is None where it cannot be told.
    """
    return {
        **kind_head("report"),
        "compared": {
            "equal": comparison.equal,
            "num_hosts": comparison.num_hosts,
            "num_devices": comparison.num_devices,
            "diff": part_document(comparison.diff, diff_document),
            "blocks": list(map(asdict, comparison.blocks)),
            "neighbours": list(map(asdict, comparison.neighbours)),
            "dataset_changes": [cause_record(cause) for cause in comparison.dataset_changes],
            "settings": [
                {"name": one.name, "a": one.a, "b": one.b, "differs": one.differs}
                for one in comparison.settings
            ],
            "a": _side(comparison.a),
            "b": _side(comparison.b),
        },
        "notes": list(map(as_options, comparison.notes)),
        "warnings": list(map(as_options, comparison.warnings)),
        "again": comparison.again,
    }


def _side(side: ComparedSide) -> Document:
    return {
        "label": side.label,
        "is_snapshot": side.is_snapshot,
        "dataset": side.head.record(),
        "spec": side.spec,
        "pipeline": side.settings,
        "rules": asdict(side.rules),
        "num_examples": None
        if isinstance(side.order, NotShown)
        else side.order.snapshot.num_examples,
        "quality": part_document(side.quality, quality_document),
        "shard_map": part_document(side.shard_map, shard_map_document),
        "hosts": part_document(side.hosts, hosts_document),
        "eval": part_document(side.evaluation, eval_document),
    }
