"""A plan to resume as the document in a plan file, and the digest at its end."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from dataclasses import fields as dataclass_fields
from typing import Any

import numpy as np

from shardctl.core.arrays import distinct
from shardctl.core.columns import Records, RecordStream
from shardctl.core.instructions.reads import Reads
from shardctl.core.loaders.stop import LoaderCall
from shardctl.core.resume.resume_plan import (
    CALLS,
    AfterRead,
    ResumePlan,
    TfCall,
)
from shardctl.core.shuffle.seeds import KernelSeeds
from shardctl.core.text import choices
from shardctl.errors import DatasetError, UsageError
from shardctl.files import fields
from shardctl.files.documents import Document, to_json, to_yaml
from shardctl.files.head import assumed, identity_head

PLAN_VERSION = 1
PLAN_KIND = "resume"
DIGEST = "digest"
PROOF = "proof"
REFS = "refs"

PlanDocument = dict[str, Any]


def resume_document(plan: ResumePlan) -> PlanDocument:
    """Return the fields of a plan in the order they are written, lists of instructions as columns.

    The last one is the digest, so that a file that was cut off or edited is known.

    Raises:
        UsageError: as for `plan_fields`.
    """
    document = plan_fields(plan)
    document[DIGEST] = digest_of(document)
    return document


def plan_fields(plan: ResumePlan) -> PlanDocument:
    """Return the fields of a plan without the digest.

    Raises:
        UsageError: a plan of a run that was shared anew, which follows from its position alone.
    """
    if plan.stretches:
        raise UsageError(
            "a plan file does not hold what hosts had consumed before a run was shared anew; keep "
            "the position instead: get_state returns it, save writes it"
        )
    listed = plan.lists_rest or plan.read_config is not None
    document: PlanDocument = {
        **identity_head(PLAN_KIND, plan.dataset, format_version=PLAN_VERSION),
        **assumed(plan.assumptions),
        **({REFS: list(plan.refs)} if plan.refs else {}),
        "spec": plan.spec,
        "pipeline": plan.pipeline,
        "consumed": plan.consumed,
        "epoch": plan.epoch,
        "remaining": plan.remaining if plan.has_end else None,
        "remaining_total": plan.remaining_total if plan.has_end else None,
        "file_instructions": plan.instructions if listed else None,
    }
    if plan.hosts:
        document["hosts"] = [
            {
                "index": host.index,
                "count": host.count,
                "num_examples": host.num_examples,
                "file_instructions": host.instructions,
            }
            for host in plan.hosts
        ]
    document |= {
        "num_pending_instructions": plan.num_pending_instructions,
        "read_config": plan.read_config,
        "after_read": [call_record(call) for call in plan.after_read],
        "mode": plan.mode,
        "exact": plan.exact,
    }
    if plan.stop is not None:
        document["stop"] = _record(plan.stop)
    if plan.pending is not None:
        document["pending"] = list(plan.pending)
    for key, state in (
        ("shuffle", plan.shuffle),
        ("unseeded", plan.unseeded),
        ("reader", plan.reader_state),
    ):
        if state is not None:
            document[key] = _record(state)
    document["num_further_epochs"] = plan.num_further_epochs
    document["further_epochs"] = list(map(_record, plan.further_epochs))
    if plan.has_stages:
        document["continued_by"] = plan.continued_by
        document["sources"] = list(map(_record, plan.sources))
    if plan.continued_by == "loader":
        document["advice"] = list(plan.advice)
    if plan.from_seen:
        document["from_seen"] = True
    if plan.from_consumed:
        document["from_consumed"] = list(plan.from_consumed)
    return document


def _record(value: Any) -> PlanDocument:
    """Return a frozen value by its fields, kernel seeds as a pair of numbers."""
    found = {field.name: getattr(value, field.name) for field in dataclass_fields(value)}
    return {
        name: [one.seed, one.seed2] if isinstance(one, KernelSeeds) else one
        for name, one in found.items()
    }


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the hash of a plan's document, whether it is in JSON, in YAML or in memory.

    The digest itself is left out of it, the proof, which is made from the plan, and `refs`: whoever
    moves a layout file may say so.
    """
    lists: list[Reads] = []

    def without_lists(value: object) -> object:
        if isinstance(value, Reads):
            lists.append(value)
            return len(value)
        raise TypeError(type(value))

    rest = {key: value for key, value in document.items() if key not in (DIGEST, PROOF, REFS)}
    text = json.dumps(
        rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=without_lists
    )
    digest = hashlib.sha256(f"shardctl resume {PLAN_VERSION}\n{text}\n".encode())
    for reads in lists:
        _add(digest, reads)
    return f"sha256:{digest.hexdigest()}"


def _add(digest: Any, reads: Reads) -> None:
    size = 1 << 16
    for start in range(0, len(reads), size):
        names = "\0".join(reads.filenames(start, start + size))
        digest.update(names.encode("utf-8", "surrogatepass") + b"\0\0")
    used = distinct(reads.split)
    digest.update("\0".join(reads.split_names[i] for i in used.tolist()).encode())
    columns = [reads.split, reads.skip, reads.take, reads.examples_in_shard]
    if reads.names_repeat and reads.shard_index is not None:
        columns.append(reads.shard_index)
    for column in columns:
        for start in range(0, len(column), size):
            part = column[start : start + size]
            part = np.searchsorted(used, part) if column is reads.split else part
            digest.update(np.ascontiguousarray(part, "<i8"))


# The calls behind the reader in a plan file: values, and the words that older files have.

_KINDS = {kind.call: kind for kind in CALLS}


def call_record(call: AfterRead) -> dict[str, Any]:
    """Return a call as a mapping; `skip_instructions` stands there where it is not 0.

    >>> call_record(read_call("shard(3, 1)"))
    {'call': 'shard', 'num_shards': 3, 'index': 1}
    """
    if isinstance(call, LoaderCall):
        return {"call": call.call, **call.arguments}
    record = {"call": call.call, **asdict(call)}
    if record.get("skip_instructions") == 0:
        del record["skip_instructions"]
    return record


def read_call(value: object) -> TfCall:
    """Return the call that a mapping describes, or that older plan files say in words.

    >>> read_call({"call": "take", "count": 4}), read_call("take(4)")
    (TakeCall(count=4), TakeCall(count=4))

    Raises:
        DatasetError: a call that no plan has.
    """
    what = "a call of after_read"
    record = _of_words(value) if isinstance(value, str) else fields.mapping(value, what)
    kind = _KINDS.get(str(record.get("call")))
    if kind is None:
        raise DatasetError(
            f"{what}: {fields.shown(record.get('call'))}; there are {choices(_KINDS)}"
        )
    arguments = {key: found for key, found in record.items() if key != "call"}
    call: TfCall = fields.record(kind, arguments, f"after_read.{kind.call}")
    if isinstance(value, str) and str(call) != value:
        raise DatasetError(f"after_read holds calls, not {fields.shown(value)}")
    return call


def _of_words(text: str) -> dict[str, object]:
    """Return the mapping of a call that was written as text, as all were in older files."""
    name = text.partition("(")[0]
    if name not in _KINDS:
        raise DatasetError(f"after_read holds calls, not {fields.shown(text)}")
    words = re.findall(r"-?[0-9]{1,19}|None", text)
    values = [None if word == "None" else int(word) for word in words]
    names = [field.name for field in dataclass_fields(_KINDS[name])]
    of_batch = {"drop_remainder": text.endswith("=True)")} if "drop_remainder" in names else {}
    return {"call": name, **dict(zip(names, values, strict=False)), **of_batch}


# A plan to resume as the plan file: JSON or YAML, an instruction a line, for a million as well.

_KEYS = ("filename", "split", "skip", "take", "examples_in_shard")


def plan_json(plan: ResumePlan, extra: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the plan file as JSON; `extra` fields come last."""
    return to_json(_written(plan, extra))


def plan_yaml(plan: ResumePlan, extra: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the plan file as YAML; `extra` fields come last."""
    return to_yaml(_written(plan, extra))


def _written(plan: ResumePlan, extra: Mapping[str, Any] | None) -> Document:
    document = {**resume_document(plan), **(extra or {})}
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
