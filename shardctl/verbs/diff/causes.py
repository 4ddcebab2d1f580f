"""Why do two orders differ: which settings, shards or rules are no longer the same?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Literal

from shardctl.dataset.dataset import Split
from shardctl.dataset.folders import layout_tells_order
from shardctl.dataset.identity import DatasetHead, differences, folder_order, order_in_words
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.saved.snapshot import PinnedSplit, Snapshot
from shardctl.settings.read_settings import settings_of_document
from shardctl.settings.short_form import stages_of
from shardctl.settings.table import SETTINGS
from shardctl.spec.host import DEFAULT_HOST_MODE, HOST_MODES
from shardctl.stages.part import Part
from shardctl.stages.stages import Pipeline, Shared, Shuffle
from shardctl.stages.text import place_of, text_of_part

# fmt: off
CauseKind = Literal[
    "rules", "spec", "setting", "stage", "dataset", "folders", "split", "shards", "state", "plan",
    "unknown",
]
# Names of settings for which there is a stage.
IN_STAGES = (
    "stages", "buffer", "buffer_seed", "buffer_reshuffle", "epochs", "batch", "drop_remainder",
)
Change = Literal[
    "appeared", "vanished", "length", "renamed", "hashed",  # of shards
    "changed", "added", "left out",  # of stages
]
# fmt: on


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
    did, the cause is not `certain`. A stage has its place on each side that has it, "stage 2" or
    "stage 1 of input 0". For the version of a loader `words` say what changed in between, where
    that is known.
    """

    kind: CauseKind
    name: str
    expected: object = None
    actual: object = None
    change: Change | None = None
    shards: tuple[ChangedShard, ...] = ()
    words: str = ""
    certain: bool = True
    place: str | None = None
    place_now: str | None = None


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
    # What is shared comes often.
    yield from dict.fromkeys(stage_causes(stages_of(old), stages_of(new)))


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
            words = ""
            if name == "loader_version" and loaders[1] in LOADERS and None not in (old, new):
                words = LOADERS[loaders[1]].changed_between(str(old), str(new), actual)
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
    # No common file name: renamed as a whole, for example by another number of shards.
    if not before.keys() & after.keys():
        # Every file has another name, as when the number of shards is part of it.
        if old.files or new.files:
            firsts = (f"{_first_name(split)} .. of {split.num_shards:,}" for split in (old, new))
            yield _changed("shards", old.name, *firsts, change="renamed")
        # Then shards are compared by number.
        before = dict(enumerate(old.shard_lengths))
        after = dict(enumerate(new.shard_lengths))
    shards = [
        ChangedShard(filename=_shown(key, old, new), expected=length, actual=now)
        for key in dict.fromkeys((*before, *after))
        if (length := before.get(key)) != (now := after.get(key))
    ]
    counts = old.num_shards, new.num_shards
    for change, found in (
        ("vanished", [one for one in shards if one.actual is None]),
        ("appeared", [one for one in shards if one.expected is None]),
        ("length", [one for one in shards if None not in (one.expected, one.actual)]),
    ):
        if found:
            sizes = (None, None) if change == "length" else counts
            yield _changed("shards", old.name, *sizes, change=change, shards=tuple(found))
    # Equal names and lengths in another order.
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


# Which stages of two pipelines differ, each by its place.


def stage_causes(old: Pipeline, new: Pipeline, where: str = "", now: str = "") -> Iterator[Cause]:
    """Yield what differs, in the order of the script, the source first; `where` is what is within.

    Stages are told apart by their calls, so one that moved was left out here and added there.

    >>> from shardctl.stages.text import parse_stages
    >>> before = parse_stages("cache | shuffle(10, seed=7) | batch(4)")
    >>> after = parse_stages("shuffle(10, seed=8) | batch(4) | cache")
    >>> for found in stage_causes(before, after):
    ...     print(found.place, found.place_now, found.change, found.expected, found.actual)
    stage 1 None left out cache None
    stage 2 stage 1 changed shuffle(10, seed=7) shuffle(10, seed=8)
    None stage 3 added None cache
    """
    yield from _part_causes(old.source, new.source, where, now)
    was, is_now = ([stage.called for stage in side.stages] for side in (old, new))
    # Longest common runs of calls. `False` keeps difflib from ignoring frequent ones.
    for tag, i, i_stop, j, j_stop in SequenceMatcher(None, was, is_now, False).get_opcodes():
        if tag == "equal":
            for at, at_now in zip(range(i, i_stop), range(j, j_stop), strict=True):
                stages = old.stages[at], new.stages[at_now]
                yield from _part_causes(*stages, where, now, at=(at, at_now))
            continue
        for at in range(i, i_stop):
            text, place = text_of_part(old.stages[at]), place_of(at, where)
            yield _changed(
                "stage", old.stages[at].called, text, None, change="left out", place=place
            )
        for at in range(j, j_stop):
            text, place = text_of_part(new.stages[at]), place_of(at, now)
            yield _changed(
                "stage", new.stages[at].called, None, text, change="added", place_now=place
            )


def _part_causes(
    old: Part, new: Part, where: str, now: str, *, at: tuple[int, int] | None = None
) -> Iterator[Cause]:
    """Yield what differs in a stage, or in the source where it is `at` none of them.

    Where pipelines within it are all that differs, it is what differs in them.
    """
    # Defaults are written out, so that None and True of `reshuffle` are equal.
    if _in_force(old) == _in_force(new):
        return
    alike = type(old) is type(new) and len(old.pipelines) == len(new.pipelines)
    places, inner = [_in("source", where), _in("source", now)], [where, now]
    if at is not None:
        places = [place_of(i, of) for i, of in zip(at, (where, now), strict=True)]
        inner = [f"{old.name} of {place}" for place in places]
    # The calls are equal, so the difference is in the pipelines inside.
    if alike and _arguments(old) == _arguments(new):
        for number, pair in enumerate(zip(old.pipelines, new.pipelines, strict=True)):
            if isinstance(old, Shared):  # an object that is used more than once
                inner = [f"shared {old.label}"] * 2
            several = f"input {number}" if len(old.pipelines) > 1 else ""
            yield from stage_causes(*pair, *(_in(several, of) for of in inner))
        return
    texts = (text_of_part(part, is_source=at is None) for part in (old, new))
    more = {"place": places[0], "place_now": places[1]}
    yield _changed("stage", old.called, *texts, change="changed", **more)


def _arguments(part: Part) -> list[object]:
    """Return the arguments but for the pipelines among them."""
    within = [one.name for one in part.parameters if one.takes in ("pipeline", "pipelines")]
    return [getattr(part, one.name) for one in fields(part) if one.name not in within]


def _in_force(part: Part) -> Part:
    """Return a part as it works: a shuffle reshuffles where it does not say."""
    if isinstance(part, Shuffle) and part.reshuffle is None:
        return replace(part, reshuffle=True)
    return part


def _in(part: str, where: str) -> str:
    return " of ".join(filter(None, (part, where)))
