"""Stages as the settings that say the same, where there are such settings; and the other way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import Any

from shardctl.settings.names import READER_SETTINGS, reader_arguments
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.table import SETTING_BY_FIELD
from shardctl.spec.host import Host
from shardctl.stages.part import Stage
from shardctl.stages.stages import (
    Batch,
    Cache,
    Map,
    Pipeline,
    Read,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    WithOptions,
)


def short_form(settings: ReadSettings) -> ReadSettings:
    """Return settings without stages that have the same order in every pass, or the same settings.

    `--host-by examples`, `--buffer`, `--epochs` and `--batch` are shard, shuffle, repeat and batch
    in that order, with whatever changes nothing in between.

    >>> short_form(ReadSettings(stages="map | shuffle(1000, seed=7) | repeat(3) | batch(64)"))
    ReadSettings(buffer=1000, buffer_seed=7, epochs=3, batch=64)
    >>> short_form(ReadSettings(stages="repeat(3) | shuffle(1000, seed=7)"))
    ReadSettings(stages='repeat(3) | shuffle(1000, seed=7)')
    """
    if settings.stages is None:
        return settings
    source = settings.stages.source
    if not isinstance(source, Read):
        return settings
    reader = settings_of_read(settings, source)
    reads_alike = not reader.shuffles_files or reader.reshuffle is False
    chain = chain_of(settings.stages, reads_alike=reads_alike)
    # Files that repeat without end are followed as far as `epochs` says, which stages do not say;
    # nor does a short form say that the length is not known, by which Keras counts its iterators.
    if chain is None or reader.repeat_files or not source.has_cardinality:
        return settings
    changes: dict[str, Any] = {}
    if chain.shard is not None:
        if reader.host is not None:  # two ways to share, one after the other
            return settings
        host = Host(index=chain.shard.index, count=chain.shard.num_shards)
        changes |= {"host": host, "host_by": "examples"}
    if chain.shuffle is not None:
        seed = chain.shuffle.seed
        changes |= {"buffer": chain.shuffle.buffer, "buffer_reshuffle": chain.shuffle.reshuffle}
        changes["buffer_seed"] = None if isinstance(seed, tuple) else seed  # a chain has no pair
    if chain.batch is not None:
        changes |= {"batch": chain.batch.size, "drop_remainder": chain.batch.drop_remainder}
    if chain.repeat is not None and chain.repeat.count is not None:
        changes["epochs"] = chain.repeat.count
    return replace(reader, **changes)


def of_one_reader(settings: ReadSettings) -> tuple[ReadSettings, Read | None] | None:
    """Return settings without stages that say the same, and their one reader; None for no such.

    What that reader itself names, as `read(test, data='mnist')`, is for the caller to keep. It is
    None where there are no stages in the first place.
    """
    if settings.stages is None:
        return settings, None
    reader = settings.stages.source
    if not isinstance(reader, Read):
        return None
    plain = replace(settings.stages, source=replace(reader, spec=None, data=None))
    short = short_form(replace(settings, stages=plain))
    return (short, reader) if short.stages is None else None


def stages_of(settings: ReadSettings, total: Callable[[], int] | None = None) -> Pipeline:
    """Return the stages that settings say, in whichever form.

    Files that repeat without end have no repeat behind them; they are cut after `total` examples,
    where that is given.

    >>> from shardctl.stages.text import text_of
    >>> text_of(stages_of(ReadSettings(buffer=10, buffer_seed=3, batch=2)))
    'shuffle(10, seed=3) | batch(2)'
    """
    if settings.stages is not None:
        return settings.stages
    host = settings.host if settings.host_mode.reads_all else None
    seed, reshuffle = settings.buffer_seed, settings.buffer_reshuffle
    stages: list[Stage] = []
    if host is not None:
        stages.append(Shard(num_shards=host.count, index=host.index))
    if settings.buffer is not None:
        stages.append(Shuffle(buffer=settings.buffer, seed=seed, reshuffle=reshuffle))
    if settings.repeat_files and total is not None:
        stages.append(Take(count=total()))
    if settings.epochs != 1 and not settings.repeat_files:
        stages.append(Repeat(count=settings.epochs))
    if settings.batch is not None:
        stages.append(Batch(size=settings.batch, drop_remainder=settings.drop_remainder))
    return Pipeline(stages=tuple(stages))


# The one chain that settings can say: shard, shuffle, repeat and batch behind the reader.


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The stages of the chain, None for those that are not there."""

    shard: Shard | None = None
    shuffle: Shuffle | None = None
    repeat: Repeat | None = None
    batch: Batch | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Those that are there, in their order."""
        chain = (self.shard, self.shuffle, self.repeat, self.batch)
        return tuple(stage for stage in chain if stage is not None)


def chain_of(pipeline: Pipeline, *, reads_alike: bool) -> Chain | None:
    """Return the chain whose order a pipeline has in every pass; None where it has another.

    Left out are stages that change no order and part no shuffle and repeat. Those two are one
    operation where they meet, and draw other seeds from the second pass on where they do not
    (tensorflow/core/grappler/optimizers/data/shuffle_and_repeat_fusion.cc).

    reads_alike: whether the reader has the same order in each epoch, so that a cache of it has.

    >>> from shardctl.stages.stages import Prefetch
    >>> chain = chain_of(Pipeline(stages=(Map(), Repeat(count=2))), reads_alike=False)
    >>> chain.stages
    (Repeat(count=2),)
    >>> for between in (Map(), Prefetch(size=0)):
    ...     parted = (Shuffle(buffer=9, seed=1), between, Repeat(count=2))
    ...     assert chain_of(Pipeline(stages=parted), reads_alike=True) is None
    """
    source = pipeline.source
    if not isinstance(source, Read) or (source.spec, source.data) != (None, None):
        return None
    options = [stage for stage in pipeline.stages if isinstance(stage, WithOptions)]
    # A warm start reads ahead of iterators that nobody reads, and False hands out what is ready.
    if any(option.warm_start or option.deterministic is False for option in options):
        return None
    optimized = all(option.optimizations is not False for option in options)
    fused = optimized and all(option.fusion is not False for option in options)
    kept = [s for s in pipeline.stages if not (optimized and s.is_noop)]
    if not fused and _shuffles_before_repeat(kept):
        return None
    chain = Chain()
    previous: Stage | None = None
    for stage in kept:
        added = _with_stage(chain, stage, previous, reads_alike=reads_alike)
        if added is None:
            return None
        chain, previous = added, stage
    return chain


def _with_stage(
    chain: Chain, stage: Stage, previous: Stage | None, *, reads_alike: bool
) -> Chain | None:
    """Return the chain with one stage more, None where it is no such chain any more."""
    match stage:
        case Map(deterministic=False):
            return None
        case _ if stage.keeps_order:
            return chain
        case Take() | Skip() | Shard() if stage.is_noop:
            return chain
        case Cache():
            return chain if reads_alike and chain.shuffle is None else None
        case Shard() if not chain.stages:
            return Chain(shard=stage)
        case Shuffle() if isinstance(stage.seed, int | None) and not _is_late(chain):
            return None if chain.shuffle else Chain(shard=chain.shard, shuffle=stage)
        # One that is not taken out makes a second iterator after the first ends.
        case Repeat() if stage.count not in (None, 1) and not _is_late(chain):
            parted = chain.shuffle is not None and previous is not chain.shuffle
            return None if parted else Chain(shard=chain.shard, shuffle=chain.shuffle, repeat=stage)
        case Batch() if chain.batch is None:
            return Chain(shard=chain.shard, shuffle=chain.shuffle, repeat=chain.repeat, batch=stage)
        case _:
            return None


def _is_late(chain: Chain) -> bool:
    return chain.repeat is not None or chain.batch is not None


def _shuffles_before_repeat(stages: Sequence[Stage]) -> bool:
    behind = dropwhile(lambda stage: not isinstance(stage, Shuffle), stages)
    return any(isinstance(stage, Repeat) for stage in behind)


# What a reader is read with: its own settings, over those of the command.


def settings_of_read(settings: ReadSettings, read: Read) -> ReadSettings:
    """Return the settings of one reader: its own, over those of the reader of the command.

    Stages are left out, and so is all that is behind a reader.

    >>> from shardctl.settings.read_settings import ReadSettings
    >>> settings_of_read(ReadSettings(cycle=4, block=2), Read(settings=(("block", 1),)))
    ReadSettings(cycle=4, block=1)
    """
    own = reader_arguments(read)
    # What a script does that lists files itself is all said there.
    held = _OF_SCRIPT if read.listed else _HELD
    kept = {name: getattr(settings, name) for name in held}
    _give_way(kept, own)
    return type(settings)(**kept | own)


_FOR_ALL = ("global_seed", "pass", "loop")
_OF_SCRIPT = tuple(f for f, setting in SETTING_BY_FIELD.items() if setting.name in _FOR_ALL)
_HELD = tuple(
    field
    for field, setting in SETTING_BY_FIELD.items()
    if setting.name in (*READER_SETTINGS, *_FOR_ALL)
)


def _give_way(kept: dict[str, Any], own: Mapping[str, Any]) -> None:
    """Leave out what the settings of a reader of its own would contradict."""
    for name, others in {"reverse": ("file_order",), "file_order": ("reverse",)}.items():
        for other in others if own.get(name) else ():
            kept.pop(other, None)
    if own.get("cycle", "auto") != "auto":
        kept.pop("cpus", None)
    if "shuffle_seed" in own:
        kept.pop("shuffle_files", None)
