"""A plan to resume as the plan file: JSON or YAML, an instruction a line, for a million as well."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.columns import Records, RecordStream
from shardctl.core.instructions.reads import Reads
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.files.documents import Document, to_json, to_yaml
from shardctl.files.plan.document import resume_document

_KEYS = ("filename", "split", "skip", "take", "examples_in_shard")


def plan_json(plan: ResumePlan) -> Iterator[str]:
    """Yield the plan file as JSON."""
    return to_json(plan_document(plan))


def plan_yaml(plan: ResumePlan) -> Iterator[str]:
    """Yield the plan file as YAML."""
    return to_yaml(plan_document(plan))


def plan_document(plan: ResumePlan) -> Document:
    """Return the document of the plan file, its instructions as columns."""
    document = resume_document(plan)
    for part in (document, *document.get("hosts", ())):
        if part["file_instructions"] is not None:
            part["file_instructions"] = _records(part["file_instructions"])
    return document


def _records(reads: Reads) -> Records:
    return reads.records((*_KEYS, "shard_index") if reads.names_repeat else _KEYS)


def instruction_rows(plan: ResumePlan) -> RecordStream:
    """Return a CSV row for each file instruction; the host is empty where the plan is for one."""
    shares = [(f"{host.index}/{host.count}", host.instructions) for host in plan.hosts]
    return RecordStream(
        ("host", *_KEYS),
        lambda: (
            (count, [host, *cells])
            for host, reads in ((None, plan.instructions), *shares)
            for count, cells in reads.records(_KEYS).pieces()
        ),
    )


def record_size(reads: Reads) -> int:
    """Return about how many bytes an instruction takes in a plan file."""
    record = reads.select(slice(-1, None))
    return len("".join(to_json({"file_instructions": _records(record)}))) - 33
