"""A snapshot as a document: YAML that people review, or JSON; the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from shardctl.core.snapshot.snapshot import (
    EVEN,
    KIND,
    MAX_SNAPSHOT_BYTES,
    PinnedSplit,
    Snapshot,
    checksum,
    lengths_in_words,
)
from shardctl.errors import UsageError
from shardctl.files.documents import Block, Document, Words, to_json, to_yaml
from shardctl.files.head import head
from shardctl.files.shard_files import files_field

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
        **({"refs": list(snapshot.refs)} if snapshot.refs else {}),
        "spec": snapshot.spec,
        "num_examples": snapshot.num_examples,
        "order": tree.root.hex(),
        "first_ids": list(snapshot.first_ids),
        "rules": asdict(snapshot.rules),
        "pipeline": snapshot.pipeline,
        **({"sources": list(map(asdict, snapshot.sources))} if snapshot.sources else {}),
        "layout": {
            "ordered": snapshot.ordered,
            "splits": [_split(pinned) for pinned in snapshot.splits],
        },
        "tree": {
            **({"version": tree.version} if tree.version > 1 else {}),
            "leaf_size": tree.leaf_size,
            LEAVES[tree.version]: [leaf.hex() for leaf in tree.leaves],
        },
    }
    return {**document, "checksum": checksum(document)}


def _split(pinned: PinnedSplit) -> Document:
    document: Document = {
        "name": pinned.name,
        "num_examples": pinned.num_examples,
        "num_shards": pinned.num_shards,
    }
    split = pinned.split
    if split is not None:
        lengths = list(lengths_in_words(split))
        document["files"] = files_field(split.files)
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
