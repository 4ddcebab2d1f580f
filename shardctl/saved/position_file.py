"""Positions as text: a few lines of JSON, within a checkpoint or in a file of their own."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from shardctl.base.text import printable
from shardctl.dataset.identity import DatasetIdentity
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.atomic import new_file
from shardctl.files.parse import parse_json
from shardctl.saved.head import identity_fields, identity_head, read_identity
from shardctl.saved.resume_plan import MAX_HOSTS, RunSegment
from shardctl.settings.read_settings import ReadSettings, settings_in_force, settings_of_document
from shardctl.stores.stores import path_of, read_file

POSITION_KIND = "position"
_VERSION = 1
_SHARED_VERSION = 2  # of a run that was shared anew: read as the other it would continue elsewhere
_DIGEST = "digest"


@dataclass(frozen=True, kw_only=True)
class PositionRecord:
    """What a position file holds: `consumed` examples of an order, counted from its start.

    sources: other datasets that the readers of stages name, by their references; files of older
        versions have none.
    stretches: of a run that continued with other hosts, what came before; the order is then this
        host's part of the last sharing.
    """

    dataset: DatasetIdentity
    spec: str
    settings: ReadSettings
    consumed: int
    sources: Mapping[str, DatasetIdentity] = field(default_factory=dict)
    stretches: tuple[RunSegment, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the record as the mapping that the file holds."""
        # The lowest version that can say it, so that an older shardctl reads what it can.
        version = _SHARED_VERSION if self.stretches else _VERSION
        document: dict[str, Any] = {
            **identity_head(POSITION_KIND, self.dataset, format_version=version),
            "spec": self.spec,
            "pipeline": settings_in_force(self.settings, ordered=self.dataset.ordered),
            "consumed": self.consumed,
        }
        if self.sources:
            document["sources"] = [
                {"data": ref, **identity_fields(source)} for ref, source in self.sources.items()
            ]
        if self.stretches:
            document["stretches"] = [stretch_document(stretch) for stretch in self.stretches]
        return {**document, _DIGEST: _digest_of(document)}


def position_text(record: PositionRecord) -> bytes:
    """Return what a position file holds, and what a checkpoint holds of a position."""
    # The counts of many hosts would take a line each.
    indent = None if record.stretches else 2
    return (json.dumps(record.document(), indent=indent) + "\n").encode("ascii")


def position_of_text(data: bytes, *, source: str) -> PositionRecord:
    """Return the position that `position_text` wrote; `source` names it in errors.

    Raises:
        DatasetError: no position, one of a newer kind, or one that was edited.
    """
    value = parse_json(data, source=source)
    with fields.said_about(source):
        document = fields.mapping(value, "a position")
        if document.get("kind") != POSITION_KIND:
            raise DatasetError(
                f"this is not a position, which has kind {POSITION_KIND!r}; "
                "Position.save writes one, Position.get_state returns one"
            )
        if document.get("format_version") not in (_VERSION, _SHARED_VERSION):
            raise DatasetError(
                f"format_version {fields.shown(document.get('format_version'))}: "
                f"this shardctl reads positions of version {_VERSION} and {_SHARED_VERSION}"
            )
        content = {key: value for key, value in document.items() if key != _DIGEST}
        # Before its fields are read, so that an edited file gets this error.
        if document.get(_DIGEST) != _digest_of(content):
            raise DatasetError("it does not match its digest: it was edited or damaged")
        pipeline = fields.mapping(document.get("pipeline"), "pipeline")
        return fields.record(
            PositionRecord,
            document,
            dataset=read_identity(document),
            settings=settings_of_document(pipeline, "pipeline"),
            sources=dict(map(_source, fields.items(document.get("sources", []), "sources"))),
            stretches=stretches_of_document(_stretches(document)),
        )


def write_position(path: str | os.PathLike[str], record: PositionRecord) -> None:
    """Write a position file that is there whole, or as it was before, whenever the machine stops.

    Raises:
        UsageError: it cannot be written there.
    """
    with new_file(os.fspath(path), "the position") as file:
        file.write(position_text(record))


def read_position(path: str | os.PathLike[str]) -> PositionRecord:
    """Return what a position file holds.

    Raises:
        DatasetError: no such file, or as for `position_of_text`.
    """
    place = path_of(os.fspath(path))
    return position_of_text(read_file(place), source=printable(str(place)))


def _stretches(document: Mapping[str, object]) -> list[object]:
    # Version 1 has no such field.
    if document.get("format_version") == _VERSION:
        return []
    found = fields.items(document.get("stretches"), "stretches")
    if not found:
        raise DatasetError("stretches: a position of version 2 has at least one")
    return found


def stretches_of_document(items: object) -> tuple[RunSegment, ...]:
    """Return what `stretch_document` made of each stretch, or raise."""
    return tuple(
        _stretch(fields.mapping(item, f"stretches[{index}]"), f"stretches[{index}]")
        for index, item in enumerate(fields.items(items, "stretches"))
    )


def stretch_document(stretch: RunSegment) -> dict[str, Any]:
    """Return a stretch as a mapping; equal neighbours are [count, how many hosts].

    >>> stretch_document(RunSegment(consumed=(64, 64, 48), batch=8))
    {'consumed': [[64, 2], [48, 1]], 'batch': 8, 'host_by': 'even', 'alone': False}
    """
    runs = [[count, sum(1 for _ in hosts)] for count, hosts in groupby(stretch.consumed)]
    return {**asdict(stretch), "consumed": runs}


def _stretch(document: Mapping[str, object], where: str) -> RunSegment:
    counts: list[int] = []
    for item in fields.items(document.get("consumed"), f"{where}.consumed"):
        pair = fields.items(item, f"{where}.consumed")
        if len(pair) != 2:
            raise DatasetError(f"{where}.consumed: [count, hosts] is needed")
        count, num_hosts = (fields.count(number, f"{where}.consumed") for number in pair)
        # Before the list is made longer: "[1, 10**12]" must not fill the memory.
        if len(counts) + num_hosts > MAX_HOSTS:
            raise DatasetError(f"{where}.consumed: {MAX_HOSTS} hosts at most")
        # Pairs of [count, hosts] become one number for each host again.
        counts += [count] * num_hosts
    stretch = fields.record(RunSegment, document, where, consumed=tuple(counts))
    if not counts or (stretch.alone and len(counts) > 1):
        raise DatasetError(f"{where}: hosts are needed, of which one alone is one")
    return stretch


def _source(value: object) -> tuple[str, DatasetIdentity]:
    source = fields.mapping(value, "a source")
    return fields.text(source.get("data"), "data of a source"), read_identity(source)


def _digest_of(document: Any) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(f'shardctl position {text}'.encode()).hexdigest()}"
