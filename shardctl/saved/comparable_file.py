"""Files that can be compared: snapshots, and the plans of `plan` and `resume`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from shardctl.base.text import choices, printable
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.parse import parse_document
from shardctl.saved.head import read_head
from shardctl.saved.plan_file import PLAN_KIND, plan_fields, plan_from_document, read_instructions
from shardctl.saved.resume_plan import ListedPlan, PlanListing, ResumePlan
from shardctl.saved.snapshot import KIND, Snapshot
from shardctl.saved.snapshot_file import snapshot_from_document
from shardctl.stores.stores import read_file

KINDS = (KIND, "plan", "resume")
_CONFLICT = re.compile(rb"^(?:<{7}|={7}|>{7})(?: |\r?$)", re.MULTILINE)
# What a plan file says besides how to resume, or says of its instructions.
_NO_STATE = (
    "format_version",
    "kind",
    "dataset",
    "splits",
    "refs",
    "pipeline",
    "file_instructions",
    "hosts",
    "num_pending_instructions",
    "read_config",
    "digest",
    "advice",
)


def read_comparable(path: Path) -> Snapshot | PlanListing:
    """Return what a file holds, JSON or YAML.

    Raises:
        DatasetError: the file cannot be read, is torn or edited, of another version, or of a kind
            that is not compared.
    """
    data = read_file(path)
    return parse_comparable(data, source=printable(str(path)))


def parse_comparable(data: bytes, *, source: str) -> Snapshot | PlanListing:
    """Return what the text of such a file holds; `source` names it in errors.

    Raises:
        DatasetError: as for `read_comparable`.
    """
    document = _parsed(data, source)
    kind = document.get("kind")
    if kind == PLAN_KIND:
        return listing_of_plan(plan_from_document(document, source=source))
    with fields.said_about(source):
        if kind == KIND:
            return snapshot_from_document(document)
        if kind == "plan":
            return _plans(document)
        if not isinstance(kind, str):
            raise DatasetError("no kind: shardctl did not write this file, or it is cut off")
        raise DatasetError(
            f"kind {fields.shown(kind)} is not compared; diff reads {choices(KINDS)}"
        )


def _parsed(data: bytes, shown: str) -> Mapping[str, object]:
    if not data.strip():
        raise DatasetError(f"{shown} is empty; it should hold a snapshot or a plan")
    if _CONFLICT.search(data):
        raise DatasetError(
            f"{shown} holds the marks of a merge conflict; take one side, or write the file again"
        )
    try:
        document = parse_document(data, source=shown)
    except DatasetError as error:
        if re.search(rb"\bkind\"?:\s*\"?snapshot\b", data):
            raise DatasetError(f"{error}; the snapshot is cut off or was edited") from None
        raise
    with fields.said_about(shown):
        return fields.mapping(document, "a file to compare")


def _plans(document: Mapping[str, object]) -> PlanListing:
    if document.get("format_version") != 1:
        version = fields.shown(document.get("format_version"))
        raise DatasetError(f"format_version {version} of the plan; this shardctl reads 1")
    return PlanListing(
        kind="plan",
        plans=tuple(_plan(item) for item in fields.items(document.get("plans"), "plans")),
        dataset=read_head(document),
    )


def listing_of_plan(plan: ResumePlan) -> PlanListing:
    """Return what is compared of a plan to resume."""
    plans = [ListedPlan(title="", reads=plan.instructions)]
    for host in plan.hosts:
        title = f"host {host.index} of {host.count}"
        plans.append(ListedPlan(title=title, reads=host.instructions))
    document = plan_fields(plan)
    return PlanListing(
        kind=PLAN_KIND,
        dataset=plan.dataset,
        plans=tuple(plans),
        pipeline=document["pipeline"],
        state=dict(_state({**document, "after_read": plan.after_read})),
    )


def _state(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield what a plan file says by name, what is one level down as `name, key`."""
    for key, value in document.items():
        if isinstance(value, Mapping) and key not in _NO_STATE:
            yield from ((f"{key}, {part}", found) for part, found in value.items())
        elif key not in _NO_STATE:
            yield key, value


def _plan(item: object) -> ListedPlan:
    plan = fields.mapping(item, "a plan")
    title = [printable(str(plan["spec"]))] if isinstance(plan.get("spec"), str) else []
    host = plan.get("host")
    if isinstance(host, Mapping):
        title.append(f"host {fields.shown(host.get('index'))} of {fields.shown(host.get('count'))}")
    items = fields.items(plan.get("file_instructions"), "file_instructions")
    splits = [fields.mapping(item, "a file instruction").get("split") for item in items]
    names = {fields.name(name, "split"): place for place, name in enumerate(dict.fromkeys(splits))}
    reads = read_instructions(items, names, "file_instructions", more=("first_id",))
    return ListedPlan(title=", ".join(title), reads=reads)
