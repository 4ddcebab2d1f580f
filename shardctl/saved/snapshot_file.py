"""Reads and writes snapshots as files, and reads the other files that `diff` compares."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from shardctl.base.columns import picked
from shardctl.base.text import choices, printable, quoted
from shardctl.dataset.dataset import Split
from shardctl.errors import DatasetError, UsageError
from shardctl.files import fields
from shardctl.files.documents import FORMAT_VERSION, Block, Document, Words, to_json, to_yaml
from shardctl.files.parse import parse_document
from shardctl.order.order_tree import VERSIONS, HashTree, leaf_size
from shardctl.saved.head import head, read_head
from shardctl.saved.plan_file import PLAN_KIND, plan_fields, plan_from_document, read_instructions
from shardctl.saved.resume_plan import ListedPlan, PlanListing, ResumePlan
from shardctl.saved.snapshot import (
    EVEN,
    KIND,
    MAX_SNAPSHOT_BYTES,
    PinnedSplit,
    ShardHashes,
    Snapshot,
    checksum,
    lengths_in_words,
)
from shardctl.settings.table import stages_in
from shardctl.stages.pipelines import readers_of
from shardctl.stores.stores import path_of, read_file

_REWRITE = "write it anew with shardctl snapshot -o FILE"
_MAX_NUM_SHARDS = 10_000_000
_RUN = re.compile(r"(\d{1,19})(?:x(\d{1,8}))?")
_HEX = re.compile(r"(?:[0-9a-f]{2})+")


def snapshot_from_document(document: Mapping[str, object]) -> Snapshot:
    """Return the snapshot that a parsed file holds.

    Lists of words may be one text with blanks between the words, as in the YAML that is written.

    Raises:
        DatasetError: another format version; no checksum or another one, so the file is cut off or
            was edited; a field that is missing or ill-formed.
    """
    # The version first: a newer file may have another checksum, which would look like damage.
    _check_version(document)
    # The checksum is over lists, which YAML may hold as blocks of words.
    normal = _normal(document)
    if "checksum" not in normal:
        raise DatasetError(f"the snapshot has no checksum: it is cut off or was edited; {_REWRITE}")
    try:
        is_whole = normal["checksum"] == checksum(normal)
    except TypeError:  # keys that cannot be sorted, which no snapshot has
        is_whole = False
    if not is_whole:
        raise DatasetError(
            "the snapshot does not have the checksum it states: it was edited, merged or cut off; "
            f"restore it, or {_REWRITE}"
        )
    with fields.said_about("the snapshot"):
        return _snapshot(normal)


def _check_version(document: Mapping[str, object]) -> None:
    tree = document.get("tree")
    # Digests of version 1 are written without the field.
    digests = tree.get("version", 1) if isinstance(tree, dict) else 1
    versions: dict[str, tuple[object, Sequence[int]]] = {
        "format version": (document.get("format_version"), (FORMAT_VERSION,)),
        "digests of version": (digests, VERSIONS),
    }
    for noun, (value, known) in versions.items():
        if type(value) is not int or value not in known:
            newest = isinstance(value, int) and value > max(known)
            age = "; a newer shardctl wrote it, install it" if newest else ""
            raise DatasetError(
                f"the snapshot has {noun} {fields.shown(value)}{age}; this one reads "
                f"{' and '.join(map(str, known))}: {_REWRITE}"
            )


def _normal(value: Any) -> Any:
    """Return a document with the blocks of words as lists again."""
    if isinstance(value, list):
        return list(map(_normal, value))
    if not isinstance(value, dict):
        return value
    return {
        key: item.split()
        if key in WORDS and isinstance(item, str) and item != EVEN
        else _normal(item)
        for key, item in value.items()
    }


def _snapshot(document: Mapping[str, Any]) -> Snapshot:
    layout = fields.mapping(document.get("layout"), "layout")
    pinned = fields.record(
        Snapshot,
        document,
        head=read_head(document),
        ordered=fields.flag(layout.get("ordered"), "ordered"),
        splits=tuple(_splits(layout.get("splits"))),
        pipeline=dict(fields.mapping(document.get("pipeline"), "pipeline")),
        tree=_tree(document),
    )
    _check_sources(pinned)
    # The root follows from the leaves; stated twice, for people and as a check.
    if pinned.tree.root.hex() != document.get("order"):
        raise DatasetError("order is not the root of the tree")
    return pinned


def _check_sources(pinned: Snapshot) -> None:
    """Check that readers of stages find their datasets, and every dataset its splits."""
    try:
        stages = stages_in(pinned.pipeline)
        readers = () if stages is None else readers_of(stages)
    except UsageError as error:
        raise DatasetError(f"stages: {error}") from None
    named = {source.data for source in pinned.sources}
    if not (named or readers):
        return
    # Each dataset once, and just those that the stages read.
    if len(named) < len(pinned.sources) or named != {reader.data for reader in readers}:
        raise DatasetError("sources are not the datasets that the stages read")
    labels = {source.label and fields.split_name(source.label) for source in pinned.sources}
    known = {split.name.rpartition("/")[0] if labels != {""} else "" for split in pinned.splits}
    if not known <= labels:
        raise DatasetError("a split is of none of the sources")


def _tree(document: Mapping[str, Any]) -> HashTree:
    num_examples = fields.count(document.get("num_examples"), "num_examples")
    tree = fields.mapping(document.get("tree"), "tree")
    if tree.get("leaf_size") != leaf_size(num_examples):
        raise DatasetError(
            f"leaf_size {fields.shown(tree.get('leaf_size'))} is not that of {num_examples} "
            f"examples, {leaf_size(num_examples)}"
        )
    version = fields.count(tree.get("version", 1), "the version of digests")
    leaves = tuple(_digests(tree.get(LEAVES[version]), 32, "a leaf"))
    made = tuple(map(bytes.fromhex, leaves))
    try:
        return HashTree(num_examples=num_examples, leaves=made, version=version)
    except ValueError as error:
        raise DatasetError(str(error)) from None


def _digests(value: object, num_digits: int, what: str) -> Iterator[str]:
    for item in fields.items(value, f"{what}'s list"):
        if not isinstance(item, str) or len(item) != num_digits or not _HEX.fullmatch(item):
            raise DatasetError(f"{what} {fields.shown(item)} is not {num_digits} hex digits")
        yield item


def _splits(value: object) -> Iterator[PinnedSplit]:
    items = fields.items(value, "splits")
    if not items:
        raise DatasetError("no splits")
    names = set()
    for item in items:
        record = fields.mapping(item, "a split")
        name = fields.split_name(record.get("name"))
        if name in names:
            raise DatasetError(f"split {quoted(name)} is there twice")
        names.add(name)
        with fields.said_about(f"split {quoted(name)}"):
            yield _split(name, record)


def _split(name: str, record: Mapping[str, object]) -> PinnedSplit:
    num_examples, num_shards = (
        fields.count(record.get(key), key) for key in ("num_examples", "num_shards")
    )
    pinned = partial(PinnedSplit, name=name, num_examples=num_examples, num_shards=num_shards)
    if "shard_lengths" in record:
        # Before lists of this length are made: the file may come from anywhere.
        if num_shards > _MAX_NUM_SHARDS:
            raise DatasetError(f"num_shards {num_shards} is more than {_MAX_NUM_SHARDS}")
        files = tuple(fields.files_of_field(record.get("files"), num_shards))
        lengths = record["shard_lengths"]
        if lengths == EVEN:
            split = Split.even(
                name=name, num_examples=num_examples, num_shards=num_shards, files=files
            )
        else:
            split = Split(name=name, shard_lengths=_lengths(lengths, num_shards), files=files)
        # Stated twice, since people read the total and the program reads the lengths.
        if split.num_examples != num_examples:
            raise DatasetError(f"shard_lengths hold {split.num_examples}, not {num_examples}")
        return pinned(split=split)
    size = fields.count(record.get("shards_per_digest"), "shards_per_digest")
    digests = tuple(_digests(record.get("shard_digests"), 24, "a shard digest"))
    if size < 1 or len(digests) != -(-num_shards // size):
        raise DatasetError(f"{len(digests)} digests for {num_shards} shards, {size} each")
    return pinned(hashes=ShardHashes(size=size, digests=digests))


def _lengths(value: object, num_shards: int) -> tuple[int, ...]:
    lengths: list[int] = []
    for word in fields.items(value, "shard_lengths"):
        match = _RUN.fullmatch(word) if isinstance(word, str) else None
        if match is None:
            raise DatasetError(f"{fields.shown(word)} is not a shard length, as in 3 or 3x12")
        # "3x12" is 12 shards of 3 examples; checked against the total before the list grows.
        count = int(match[2] or 1)
        if len(lengths) + count > num_shards:
            raise DatasetError(f"shard_lengths are more than the {num_shards} shards")
        lengths += [fields.count(int(match[1]), "a shard length")] * count
    if len(lengths) != num_shards:
        raise DatasetError(f"{len(lengths)} shard_lengths for {num_shards} shards")
    return tuple(lengths)


# A snapshot as a document: YAML that people review, or JSON; the same bytes on every machine.

_COMMENT = (
    "# The order of a pipeline, pinned by shardctl. Compare it with today's: shardctl diff FILE.\n"
    "# Written by shardctl snapshot and shardctl diff --update, not by hand.\n"
)
# The key of the leaves in each version of the digests: an older reader finds none and refuses.
LEAVES = {1: "leaves", 2: "digests"}
WORDS = (*LEAVES.values(), "shard_lengths", "shard_digests")


def snapshot_document(snapshot: Snapshot) -> Document:
    """Return the document of a snapshot, its checksum last; no folder and no time is in it."""
    tree = snapshot.tree
    document: Document = {
        **head(KIND, snapshot.head, assumptions=snapshot.assumptions),
        **picked(snapshot, "refs" if snapshot.refs else ""),
        **picked(snapshot, "spec num_examples"),
        "order": tree.root.hex(),
        **picked(snapshot, "first_ids rules pipeline"),
        **picked(snapshot, "sources" if snapshot.sources else ""),
        "layout": {
            "ordered": snapshot.ordered,
            "splits": [_split_document(pinned) for pinned in snapshot.splits],
        },
        "tree": {
            **({"version": tree.version} if tree.version > 1 else {}),
            "leaf_size": tree.leaf_size,
            LEAVES[tree.version]: [leaf.hex() for leaf in tree.leaves],
        },
    }
    return {**document, "checksum": checksum(document)}


def _split_document(pinned: PinnedSplit) -> Document:
    document = picked(pinned, "name num_examples num_shards")
    if pinned.split is not None:
        lengths = list(lengths_in_words(pinned.split))
        document["files"] = fields.files_field(pinned.split.files)
        document["shard_lengths"] = EVEN if lengths == [EVEN] else lengths
    elif pinned.hashes is not None:
        document["shards_per_digest"] = pinned.hashes.size
        document["shard_digests"] = list(pinned.hashes.digests)
    return document


def snapshot_yaml(snapshot: Snapshot) -> Iterator[str]:
    """Yield a snapshot as YAML, long lists of short words as blocks that a review can follow."""
    document = snapshot_document(snapshot)
    for key in ("dataset", "rules", "pipeline"):
        document[key] = Block(document[key])  # a setting that changes is a line of a review
    for part in (document["tree"], *document["layout"]["splits"]):
        for key in WORDS:
            # Blocks of words: a change is a line of a review, not one long line.
            if isinstance(part.get(key), list):
                part[key] = Words(part[key])
    yield _checked(_COMMENT + "".join(to_yaml(document)), snapshot)


def snapshot_json(snapshot: Snapshot) -> Iterator[str]:
    """Yield a snapshot as JSON."""
    yield _checked("".join(to_json(snapshot_document(snapshot))), snapshot)


def _checked(text: str, snapshot: Snapshot) -> str:
    num_bytes = len(text.encode("utf-8", "backslashreplace"))
    if num_bytes > MAX_SNAPSHOT_BYTES:
        raise UsageError(
            f"the snapshot would take {num_bytes} bytes, of {MAX_SNAPSHOT_BYTES} at most: "
            f"{len(snapshot.splits)} splits and a spec of {len(snapshot.spec)} characters; "
            "pin fewer splits at once"
        )
    return text


# Files that can be compared: snapshots, and the plans of `plan` and `resume`.

KINDS = (KIND, "plan", "resume")
# What a plan file says besides how to resume, or says of its instructions.
_NO_STATE = re.findall(
    r"\w+",
    "format_version kind dataset splits refs pipeline file_instructions hosts "
    "num_pending_instructions read_config digest advice",
)


def read_comparable(path: str | os.PathLike[str]) -> Snapshot | PlanListing:
    """Return what a file holds, JSON or YAML.

    Raises:
        DatasetError: the file cannot be read, is torn or edited, of another version, or of a kind
            that is not compared.
    """
    place = path_of(os.fspath(path))
    return parse_comparable(read_file(place), source=printable(str(place)))


def parse_comparable(data: bytes, *, source: str) -> Snapshot | PlanListing:
    """Return what the text of such a file holds; `source` names it in errors.

    Raises:
        DatasetError: as for `read_comparable`.
    """
    return comparable_of(parsed_file(data, source=source), source=source)


def comparable_of(document: Mapping[str, object], *, source: str) -> Snapshot | PlanListing:
    """Return what a parsed file holds.

    Raises:
        DatasetError: as for `read_comparable`.
    """
    kind = document.get("kind")
    if kind == PLAN_KIND:
        return listing_of_plan(plan_from_document(document, source=source))
    with fields.said_about(source):
        if kind == KIND:
            return snapshot_from_document(document)
        if kind == "plan":
            return _plans(document)
        if not isinstance(kind, str):
            raise DatasetError("no kind: it is no snapshot or plan; a layout is named with -d")
        raise DatasetError(
            f"kind {fields.shown(kind)} is not compared; diff reads {choices(KINDS)}"
        )


def parsed_file(data: bytes, *, source: str, wanted: str = "plan") -> Mapping[str, object]:
    """Return a file to compare as a mapping: of a snapshot, or of what else is wanted.

    Raises:
        DatasetError: it is torn or merged, or no mapping.
    """
    if not data.strip():
        raise DatasetError(f"{source} is empty; it should hold a snapshot or a {wanted}")
    # Git's marks: such a file may still parse as YAML, with the lines of both sides.
    if re.search(rb"^(?:<{7}|={7}|>{7})(?: |\r?$)", data, re.MULTILINE):
        said = "take one side, or write the file again"
        raise DatasetError(f"{source} holds the marks of a merge conflict; {said}")
    try:
        document = parse_document(data, source=source)
    except DatasetError as error:
        # Which advice fits: a damaged file of ours, or a file of another kind.
        is_ours = b"format_version" in data[:400]
        cure = (
            f"it was cut off or edited; {_REWRITE}" if is_ours else f"it is no snapshot or {wanted}"
        )
        raise DatasetError(f"{error}; {cure}") from None
    with fields.said_about(source):
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
    titled = {f"host {host.index} of {host.count}": host.instructions for host in plan.hosts}
    said = {**plan_fields(plan), "after_read": plan.after_read}
    state: dict[str, object] = {}
    for key in (key for key in said if key not in _NO_STATE):
        # A mapping is compared field by field, so that a difference names the field.
        one_down = said[key] if isinstance(said[key], Mapping) else None
        state |= (
            {key: said[key]} if one_down is None else {f"{key}, {k}": one_down[k] for k in one_down}
        )
    return PlanListing(
        kind=PLAN_KIND,
        dataset=plan.dataset,
        plans=tuple(
            ListedPlan(title=t, reads=r) for t, r in {"": plan.instructions, **titled}.items()
        ),
        pipeline=said["pipeline"],
        state=state,
    )


def _plan(item: object) -> ListedPlan:
    plan = fields.mapping(item, "a plan")
    title = [printable(str(plan["spec"]))] if isinstance(plan.get("spec"), str) else []
    host = plan.get("host")
    if isinstance(host, Mapping):
        title.append(f"host {fields.shown(host.get('index'))} of {fields.shown(host.get('count'))}")
    items = fields.items(plan.get("file_instructions"), "file_instructions")
    splits = [fields.mapping(item, "a file instruction").get("split") for item in items]
    # In the order in which they first come, as a plan file lists no splits.
    names = {fields.name(name, "split"): place for place, name in enumerate(dict.fromkeys(splits))}
    reads = read_instructions(items, names, "file_instructions", more=("first_id",))
    return ListedPlan(title=", ".join(title), reads=reads)
