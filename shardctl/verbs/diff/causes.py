"""Why do two orders differ: which settings, shards or rules are no longer the same?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Literal, TypeVar

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
from shardctl.stages.part import Part, Source, Stage
from shardctl.stages.stages import Pipeline, Shared, Shuffle
from shardctl.stages.text import place_of, text_of, text_of_part

# fmt: off
CauseKind = Literal[
    "rules", "spec", "setting", "stage", "dataset", "folders", "split", "shards", "state", "plan",
    "unknown",
]
# Names of settings for which there is a stage.
IN_STAGES = (
    "stages", "buffer", "buffer_seed", "buffer_reshuffle", "epochs", "batch", "drop_remainder",
)
# fmt: on
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
    if not before.keys() & after.keys():
        # Every file has another name, as when the number of shards is part of it.
        if old.files or new.files:
            firsts = (f"{_first_name(split)} .. of {split.num_shards:,}" for split in (old, new))
            yield _changed("shards", old.name, *firsts, change="renamed")
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


# Which stages of two pipelines differ: changed, moved, added or left out, each by its place.

StageChange = Literal["changed", "moved", "moved and changed", "added", "left out", "source"]


@dataclass(frozen=True, kw_only=True)
class ChangedStage:
    """A stage, or a source, that is not the same in two pipelines.

    name: of the call, `shuffle`.
    expected, actual: as text; None on the side that does not have it.
    place, place_now: where it was and where it is, "stage 2" or "stage 1 of input 0".
    words: the rest of a sentence that begins with the place and the stage.
    """

    change: StageChange
    name: str
    expected: str | None
    actual: str | None
    place: str | None
    place_now: str | None
    words: str


def changed_stages(expected: Pipeline, actual: Pipeline) -> tuple[ChangedStage, ...]:
    """Return what differs, in the order of the script, the source first.

    >>> from shardctl.stages.text import parse_stages
    >>> before = parse_stages("cache | shuffle(10, seed=7) | batch(4)")
    >>> after = parse_stages("shuffle(10, seed=8) | batch(4) | cache")
    >>> for found in changed_stages(before, after):
    ...     print(found.place, found.name, found.words, sep=": ")
    stage 1: cache: moved from before batch to behind it
    stage 2: shuffle: seed 7 became 8
    """
    return tuple(dict.fromkeys(_pipelines(expected, actual, "", "")))  # what is shared comes often


def _pipelines(old: Pipeline, new: Pipeline, where: str, now: str) -> Iterator[ChangedStage]:
    yield from _sources(old.source, new.source, where, now)
    yield from _stages(old.stages, new.stages, where, now)


def _sources(old: Source, new: Source, where: str, now: str) -> Iterator[ChangedStage]:
    if old == new:
        return
    if isinstance(old, Shared) and isinstance(new, Shared):
        shared = f"shared {old.label}", f"shared {new.label}"
        yield from _pipelines(old.pipeline, new.pipeline, *shared)
        return
    alike = type(old) is type(new)
    words = _arguments(old, new) if alike else ""
    if words or not (alike and old.fed_by):
        actual = text_of_part(new, is_source=True)
        yield ChangedStage(
            change="source",
            name=old.called,
            expected=text_of_part(old, is_source=True),
            actual=actual,
            place=_in("source", where),
            place_now=_in("source", now),
            words=words or f"became {actual}",
        )
    if alike and old.fed_by:
        yield from _inputs(old.fed_by, new.fed_by, where, now)
        choices = (part.pipelines[len(part.fed_by) :] for part in (old, new))
        for before, after in zip(*choices, strict=True):
            yield from _pipelines(before, after, _in("choices", where), _in("choices", now))


def _inputs(
    old: Sequence[Pipeline], new: Sequence[Pipeline], where: str, now: str
) -> Iterator[ChangedStage]:
    """Compare the inputs of a mixture, those most alike with each other."""
    sources = [text_of, lambda one: text_of_part(one.source, is_source=True), lambda one: ""]
    for before, after in _pairs(old, new, sources):
        at, at_now = _in(f"input {before}", where), _in(f"input {after}", now)
        if before is None:
            yield _one_sided("input", None, text_of(new[after or 0]), at_now)
        elif after is None:
            yield _one_sided("input", text_of(old[before]), None, at)
        else:
            yield from _pipelines(old[before], new[after], at, at_now)


def _one_sided(
    name: str, expected: str | None, actual: str | None, at: str, behind: str = ""
) -> ChangedStage:
    return ChangedStage(
        change="left out" if actual is None else "added",
        name=name,
        expected=expected,
        actual=actual,
        place=at if actual is None else None,
        place_now=None if actual is None else at,
        words="was left out" if actual is None else f"was added{behind}",
    )


def _stages(
    old: Sequence[Stage], new: Sequence[Stage], where: str, now: str
) -> Iterator[ChangedStage]:
    for before, after, is_moved in _with_moved(old, new):
        if after is None:
            one = old[before or 0]
            yield _one_sided(one.called, text_of_part(one), None, place_of(before or 0, where))
            continue
        other, at_now = new[after], place_of(after, now)
        if before is None:
            behind = f" behind {text_of_part(new[after - 1])}" if after else ", the first stage"
            yield _one_sided(other.called, None, text_of_part(other), at_now, behind)
            continue
        one, at = old[before], place_of(before, where)
        moved = _moved(old, new, before, after) if is_moved else ""
        if one.fed_by and type(one) is type(other) and not moved:
            for pair in zip(one.fed_by, other.fed_by, strict=True):
                yield from _pipelines(*pair, _in(one.name, at), _in(one.name, at_now))
            continue
        if words := list(filter(None, [moved, _arguments(one, other)])):
            change: StageChange = "moved" if moved else "changed"
            yield ChangedStage(
                change="moved and changed" if len(words) > 1 else change,
                name=one.called,
                expected=text_of_part(one),
                actual=text_of_part(other),
                place=at,
                place_now=at_now,
                words=", ".join(words),
            )


def _arguments(old: Part, new: Part) -> str:
    """Return which arguments differ, "" where none does; pipelines among them are left out.

    >>> _arguments(Shuffle(buffer=10, seed=7), Shuffle(buffer=20, seed=7))
    'buffer 10 became 20'
    """
    names = [field.name for field in fields(old)]
    if isinstance(old, Source) and old.fed_by:
        within = [one.name for one in old.parameters if one.takes in ("pipeline", "pipelines")]
        names = [name for name in names if name not in within]
    return ", ".join(
        f"{name} {_value(getattr(old, name))} became {_value(getattr(new, name))}"
        for name in names
        if _in_force(old, name) != _in_force(new, name)
    )


def _in_force(part: Part, name: str) -> object:
    """Return an argument; a shuffle reshuffles where it does not say."""
    value = getattr(part, name)
    return True if value is None and isinstance(part, Shuffle) and name == "reshuffle" else value


def _value(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, Pipeline):
        return text_of(value)
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return ", ".join(f"{name}={one}" for name, one in value)
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _moved(old: Sequence[Stage], new: Sequence[Stage], before: int, after: int) -> str:
    """Return where a stage went, by a neighbour on whose other side it is now."""
    ahead, behind = ({one.called for one in part} for part in (new[:after], new[after + 1 :]))
    if passed := [one.name for one in old[before + 1 :] if one.called in ahead]:
        return f"moved from before {passed[-1]} to behind it"
    if passed := [one.name for one in old[:before] if one.called in behind]:
        return f"moved from behind {passed[0]} to before it"
    return f"moved from place {before + 1} to {after + 1}"


def _in(part: str, where: str) -> str:
    return f"{part} of {where}" if where else part


_Item = TypeVar("_Item")
_Pair = tuple[int | None, int | None]


def _pairs(
    old: Sequence[_Item], new: Sequence[_Item], keys: Sequence[Callable[[_Item], str]]
) -> Iterator[_Pair]:
    """Yield which item of one list is which of another, in order; None where it has no counterpart.

    Items are paired by the first key, what lies between such pairs by the next.

    >>> list(_pairs(["a1", "b1", "c1"], ["b2", "c1", "d1"], [str, lambda text: text[0]]))
    [(0, None), (1, 0), (2, 1), (None, 2)]
    """
    if not keys:
        yield from ((i, None) for i in range(len(old)))
        yield from ((None, j) for j in range(len(new)))
        return
    was, now = (list(map(keys[0], side)) for side in (old, new))
    for tag, i, i_stop, j, j_stop in SequenceMatcher(None, was, now, False).get_opcodes():
        if tag == "equal":
            yield from zip(range(i, i_stop), range(j, j_stop), strict=True)
            continue
        for one, other in _pairs(old[i:i_stop], new[j:j_stop], keys[1:]):
            yield None if one is None else i + one, None if other is None else j + other


def _with_moved(
    old: Sequence[Stage], new: Sequence[Stage]
) -> list[tuple[int | None, int | None, bool]]:
    """Return the pairs of stages, and which of them moved: what says the least of two ways."""

    def said(pairs: Sequence[tuple[int | None, int | None, bool]]) -> int:
        return sum(
            is_moved + (i is None or j is None or text_of_part(old[i]) != text_of_part(new[j]))
            for i, j, is_moved in pairs
        )

    ways = [[text_of_part, lambda stage: stage.called], [lambda stage: stage.called]]
    return min((list(_paired(old, new, keys)) for keys in ways), key=said)


def _paired(
    old: Sequence[Stage], new: Sequence[Stage], keys: Sequence[Callable[[Stage], str]]
) -> Iterator[tuple[int | None, int | None, bool]]:
    """Yield the pairs of stages, those of one kind that left here and came there as moved."""
    pairs = list(_pairs(old, new, keys))
    came = [after for before, after in pairs if before is None and after is not None]
    moved: dict[int, int] = {}
    for before, after in pairs:
        if before is not None and after is None:
            alike = [j for j in came if new[j].called == old[before].called]
            if alike:
                moved[before] = alike[0]
                came.remove(alike[0])
    for before, after in pairs:
        if before is not None and before in moved:
            yield before, moved[before], True
        elif before is not None or after in came:
            yield before, after, False
