"""Why do two orders differ: which settings, shards or rules are no longer the same?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from shardctl.dataset.dataset import Split
from shardctl.dataset.folders import layout_tells_order
from shardctl.dataset.identity import DatasetHead, differences, folder_order, order_in_words
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.saved.snapshot import PinnedSplit, Snapshot
from shardctl.settings.document import settings_of_document
from shardctl.settings.short_form import stages_of
from shardctl.settings.table import SETTINGS
from shardctl.spec.host import DEFAULT_HOST_MODE, HOST_MODES
from shardctl.verbs.diff.stages import ChangedStage, changed_stages

CauseKind = Literal[
    "rules",
    "spec",
    "setting",
    "stage",
    "dataset",
    "folders",
    "split",
    "shards",
    "state",
    "plan",
    "unknown",
]
# Names of settings for which there is a stage.
IN_STAGES = (
    "stages",
    "buffer",
    "buffer_seed",
    "buffer_reshuffle",
    "epochs",
    "batch",
    "drop_remainder",
)
ShardChange = Literal["appeared", "vanished", "length", "renamed", "hashed"]


@dataclass(frozen=True, kw_only=True)
class ChangedShard:
    """A shard by its name; a length is None on the side that does not have it."""

    filename: str
    expected: int | None
    actual: int | None


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Something that is no longer the same: `name` went from `expected` to `actual`.

    For shards `name` is the split, `change` what became of them, and `shards` which they are. For
    folders it is the split too, and `words` say how their order changed; where nothing tells if it
    did, the cause is not `certain`. A stage has its place and its texts in `stage`. For the version
    of a loader `words` say what changed in between, where that is known.
    """

    kind: CauseKind
    name: str
    expected: object = None
    actual: object = None
    change: ShardChange | None = None
    shards: tuple[ChangedShard, ...] = ()
    words: str = ""
    certain: bool = True
    stage: ChangedStage | None = None


def _changed(kind: CauseKind, name: str, expected: object, actual: object, **more: Any) -> Cause:
    return Cause(kind=kind, name=name, expected=expected, actual=actual, **more)


def causes(expected: Snapshot, actual: Snapshot) -> tuple[Cause, ...]:
    """Return everything pinned in which two snapshots differ, the weightiest first."""
    found = []
    rules = expected.rules, actual.rules
    if rules[0].version != rules[1].version:
        found.append(_changed("rules", "rules", *map(str, rules)))
    if expected.spec != actual.spec:
        found.append(_changed("spec", "spec", expected.spec, actual.spec))
    found += pipeline_causes(expected.pipeline, actual.pipeline)
    identities = expected.identity, actual.identity
    # What became of the files is said split by split.
    found += [
        cause
        for cause in dataset_causes(*identities, leaving_out=("fingerprint", "splits", "template"))
        if cause.kind != "folders" or _folders_count(cause, expected, actual)
    ]
    found += _splits(expected, actual)
    return tuple(found)


def _folders_count(cause: Cause, expected: Snapshot, actual: Snapshot) -> bool:
    """Whether the order of folders matters: of a split that both read, and not seen elsewhere.

    An older snapshot does not have it; the layout may show it all the same.
    """
    both = [[p for p in side.splits if p.name == cause.name] for side in (expected, actual)]
    if not all(both):
        return False
    layouts = [pinned.split for side in both for pinned in side if pinned.split is not None]
    known = cause.expected and cause.actual
    return bool(known) or not any(len(s.files) > 1 and layout_tells_order(s) for s in layouts)


def pipeline_causes(
    expected: Mapping[str, object], actual: Mapping[str, object]
) -> Iterator[Cause]:
    """Yield what differs in two pipelines; where one has stages, stage by stage.

    >>> one, other = {"stages": ["cache", {"batch": 8}]}, {"stages": ["cache"], "block": 4}
    >>> [(c.kind, c.name) for c in pipeline_causes(one, other)]
    [('setting', 'block'), ('stage', 'batch')]
    """
    if expected.get("stages") is None and actual.get("stages") is None:
        yield from setting_causes(expected, actual)
        return
    try:
        old, new = (settings_of_document(side, "pipeline") for side in (expected, actual))
    except UsageError:  # of another version, say; what is written differs in any case
        yield from setting_causes(expected, actual)
        return
    yield from setting_causes(_of_reader(expected), _of_reader(actual))
    for found in changed_stages(stages_of(old), stages_of(new)):
        yield _changed("stage", found.name, found.expected, found.actual, stage=found)


def _of_reader(pipeline: Mapping[str, object]) -> dict[str, object]:
    """Return the settings that no stage stands for."""
    kept = {name: value for name, value in pipeline.items() if name not in IN_STAGES}
    if HOST_MODES[str(kept.get("host_by") or DEFAULT_HOST_MODE)].reads_all:
        kept = {name: value for name, value in kept.items() if name not in ("host", "host_by")}
    if kept.get("host") is None:
        kept.pop("host_by", None)
    return kept


def setting_causes(expected: Mapping[str, object], actual: Mapping[str, object]) -> Iterator[Cause]:
    """Yield the settings that differ; one that a file does not have is None.

    Where other loaders read, it is that, and what means something to both of them.

    >>> [str(c.name) for c in setting_causes({"cycle": 16, "block": 1}, {"cycle": 4, "block": 1})]
    ['cycle']
    """
    loaders = [str(side.get("loader") or "tfds") for side in (expected, actual)]
    names = dict.fromkeys((*expected, *actual))
    if loaders[0] != loaders[1]:
        yield _changed("setting", "loader", *loaders)
        of_both = [s.name for s in SETTINGS if all(s.is_read_by(loader) for loader in loaders)]
        names = {name: None for name in names if name in of_both and name != "loader"}
    for name in names:
        old, new = expected.get(name), actual.get(name)
        if old != new:
            words, loader = "", LOADERS.get(loaders[1]) if name == "loader_version" else None
            if loader is not None and old is not None and new is not None:
                words = loader.changed_between(str(old), str(new), actual)
            yield _changed("setting", name, old, new, words=words)


def dataset_causes(
    expected: DatasetHead, actual: DatasetHead, *, leaving_out: Collection[str]
) -> Iterator[Cause]:
    """Yield the fields in which two datasets differ, and the splits whose folders do."""
    for found in differences(expected, actual):
        if found.field == "folders":
            yield _changed(
                "folders",
                str(found.split),
                [folder.shown for folder in found.then],
                [folder.shown for folder in found.now],
                words=order_in_words(found.then, found.now),
                certain=bool(found.then and found.now)
                and folder_order(found.then, found.now) != "unknown",
            )
        elif found.field not in leaving_out:
            yield _changed("dataset", found.field, found.then, found.now)


def _splits(expected: Snapshot, actual: Snapshot) -> Iterator[Cause]:
    before = {split.name: split for split in expected.splits}
    after = {split.name: split for split in actual.splits}
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            sizes = (None if split is None else split.num_examples for split in (old, new))
            yield _changed("split", name, *sizes)
        elif old != new:
            yield from _shards(old, new)


def _shards(old: PinnedSplit, new: PinnedSplit) -> Iterator[Cause]:
    if old.split is not None and new.split is not None:
        yield from _changed_shards(old.split, new.split)
        return
    # Where one side is hashed, digests of the same chunks of shards are compared.
    size = next(p.hashes.size for p in (old, new) if p.hashes is not None)
    before, after = old.hashed(size), new.hashed(size)
    where = ""
    if before is not None and after is not None:
        if before.digests == after.digests:
            return
        pairs = enumerate(zip_longest(before.digests, after.digests))
        chunk = next(index for index, (one, other) in pairs if one != other)
        where = f", from shard {chunk * size:,} to {(chunk + 1) * size - 1:,} at first"
    sizes = [f"{one.num_shards:,} shards, {one.num_examples:,} examples" for one in (old, new)]
    yield _changed("shards", old.name, sizes[0], f"{sizes[1]}{where}", change="hashed")


def _changed_shards(old: Split, new: Split) -> Iterator[Cause]:
    before, after = _named_lengths(old), _named_lengths(new)
    if not before.keys() & after.keys():
        # Every file has another name, as when the number of shards is part of it.
        if old.files or new.files:
            firsts = (f"{_first_name(split)} .. of {split.num_shards:,}" for split in (old, new))
            yield _changed("shards", old.name, *firsts, change="renamed")
        before = dict(enumerate(old.shard_lengths))
        after = dict(enumerate(new.shard_lengths))
    changes: dict[ShardChange, list[ChangedShard]] = {"vanished": [], "appeared": [], "length": []}
    for key in dict.fromkeys((*before, *after)):
        length, now = before.get(key), after.get(key)
        if length == now:
            continue
        change: ShardChange = (
            "vanished" if now is None else "appeared" if length is None else "length"
        )
        name = _shown(key, old, new)
        changes[change].append(ChangedShard(filename=name, expected=length, actual=now))
    for kind, shards in changes.items():
        if shards:
            counts = (None, None) if kind == "length" else (old.num_shards, new.num_shards)
            yield _changed("shards", old.name, *counts, change=kind, shards=tuple(shards))
    if before == after and list(before) != list(after):
        yield _changed("shards", old.name, *map(_first_name, (old, new)), change="renamed")


_FileKey = int | tuple[str, int]


def _named_lengths(split: Split) -> dict[_FileKey, int]:
    """Return the length of each shard by its file's name and how often it came before."""
    if not split.files:
        return {}
    seen: Counter[str] = Counter()
    lengths: dict[_FileKey, int] = {}
    for name, length in zip(split.filenames, split.shard_lengths, strict=True):
        lengths[name, seen[name]] = length
        seen[name] += 1
    return lengths


def _shown(key: _FileKey, old: Split, new: Split) -> str:
    if not isinstance(key, int):
        return key[0]
    split = new if key < new.num_shards else old
    return split.filename(key) if split.files else f"shard {key}"


def _first_name(split: Split) -> str:
    return split.filename(0) if split.files and split.num_shards else "no file"
