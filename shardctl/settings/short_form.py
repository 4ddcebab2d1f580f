"""Between the two forms of a pipeline: settings such as `--buffer 1000`, and stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from shardctl.settings.names import READER_SETTINGS, reader_arguments
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.table import SETTING_BY_FIELD
from shardctl.spec.host import Host
from shardctl.stages import stages as ast
from shardctl.stages.part import Stage


def short_form(settings: ReadSettings) -> ReadSettings:
    """Return settings without stages that have the same order in every pass, or the same settings.

    `--host-by examples`, `--buffer`, `--epochs` and `--batch` are shard, shuffle, repeat and batch
    in that order, with whatever changes nothing in between.

    >>> short_form(ReadSettings(stages="map | shuffle(1000, seed=7) | repeat(3) | batch(64)"))
    ReadSettings(buffer=1000, buffer_seed=7, epochs=3, batch=64)
    >>> short_form(ReadSettings(stages="repeat(3) | shuffle(1000, seed=7)"))
    ReadSettings(stages='repeat(3) | shuffle(1000, seed=7)')
    """
    if settings.stages is None or not settings.reader.on_tf_data:
        return settings
    source = settings.stages.source
    if not isinstance(source, ast.Read):
        return settings
    reader = settings_of_read(settings, source)
    reads_alike = not reader.shuffles_files or reader.reshuffle is False
    chain = chain_of(settings.stages, reads_alike=reads_alike)
    # Files that repeat without end are followed as far as `epochs` says, which stages do not say;
    # nor does a short form say that the length is not known, by which Keras counts its iterators.
    if chain is None or reader.repeat_files or not source.has_cardinality:
        return settings
    changes: dict[str, Any] = {}
    for stage in chain.values():
        match stage:
            case ast.Shard():
                if reader.host is not None:  # two ways to share, one after the other
                    return settings
                host = Host(index=stage.index, count=stage.num_shards)
                changes |= {"host": host, "host_by": "examples"}
            case ast.Shuffle(buffer=buffer, seed=seed, reshuffle=reshuffle):
                changes |= {"buffer": buffer, "buffer_seed": seed, "buffer_reshuffle": reshuffle}
            case ast.Repeat():
                changes["epochs"] = stage.count
            case ast.Batch():
                changes |= {"batch": stage.size, "drop_remainder": stage.drop_remainder}
    return replace(reader, **changes)


def of_one_reader(settings: ReadSettings) -> tuple[ReadSettings, ast.Read | None] | None:
    """Return settings without stages that say the same, and their one reader; None for no such.

    What that reader itself names, as `read(test, data='mnist')`, is for the caller to keep. It is
    None where there are no stages in the first place.
    """
    if settings.stages is None:
        return settings, None
    reader = settings.stages.source
    if not isinstance(reader, ast.Read):
        return None
    # What it reads is no matter of settings; only how counts here.
    plain = replace(settings.stages, source=replace(reader, spec=None, data=None))
    short = short_form(replace(settings, stages=plain))
    return (short, reader) if short.stages is None else None


def stages_of(settings: ReadSettings, total: Callable[[], int] | None = None) -> ast.Pipeline:
    """Return the stages that settings say, in whichever form.

    Files that repeat without end have no repeat behind them; they are cut after `total` examples,
    where that is given.

    >>> from shardctl.stages.text import text_of
    >>> text_of(stages_of(ReadSettings(buffer=10, buffer_seed=3, batch=2)))
    'shuffle(10, seed=3) | batch(2)'
    """
    if settings.stages is not None:
        return settings.stages
    # Other host modes share before the reader, so no stage says them.
    host = settings.host if settings.host_mode.reads_all else None
    seed, reshuffle = settings.buffer_seed, settings.buffer_reshuffle
    stages: list[Stage] = []
    if host is not None:
        stages.append(ast.Shard(num_shards=host.count, index=host.index))
    if settings.buffer is not None:
        stages.append(ast.Shuffle(buffer=settings.buffer, seed=seed, reshuffle=reshuffle))
    if settings.repeat_files and total is not None:
        stages.append(ast.Take(count=total()))
    if settings.epochs != 1 and not settings.repeat_files:
        stages.append(ast.Repeat(count=settings.epochs))
    if settings.batch is not None:
        stages.append(ast.Batch(size=settings.batch, drop_remainder=settings.drop_remainder))
    return ast.Pipeline(stages=tuple(stages))


# The one chain that settings can say: shard, shuffle, repeat and batch behind the reader.


Chain = dict[str, Any]  # stages by their names
# What may come before each of them.
_BEFORE = {
    "shard": set[str](),
    "shuffle": {"shard"},
    "repeat": {"shard", "shuffle"},
    "batch": {"shard", "shuffle", "repeat"},
}


def chain_of(pipeline: ast.Pipeline, *, reads_alike: bool) -> Chain | None:
    """Return the chain whose order a pipeline has in every pass; None where it has another.

    Left out are stages that change no order and part no shuffle and repeat. Those two are one
    operation where they meet, and draw other seeds from the second pass on where they do not
    (tensorflow/core/grappler/optimizers/data/shuffle_and_repeat_fusion.cc).

    reads_alike: whether the reader has the same order in each epoch, so that a cache of it has.

    >>> chain_of(ast.Pipeline(stages=(ast.Map(), ast.Repeat(count=2))), reads_alike=False)
    {'repeat': Repeat(count=2)}
    >>> for between in (ast.Map(), ast.Prefetch(size=0)):
    ...     parted = (ast.Shuffle(buffer=9, seed=1), between, ast.Repeat(count=2))
    ...     assert chain_of(ast.Pipeline(stages=parted), reads_alike=True) is None
    """
    source = pipeline.source
    if not isinstance(source, ast.Read) or (source.spec, source.data) != (None, None):
        return None
    options = [stage for stage in pipeline.stages if isinstance(stage, ast.WithOptions)]
    # A warm start reads ahead of iterators that are not read; False yields in order of completion.
    if any(getattr(stage, "deterministic", None) is False for stage in pipeline.stages):
        return None
    if any(option.warm_start for option in options):
        return None
    optimized = all(option.optimizations is not False for option in options)
    fused = optimized and all(option.fusion is not False for option in options)
    chain: Chain = {}
    previous: Stage | None = None
    for stage in pipeline.stages:
        # Taken out before fusion, so that it does not stand between a shuffle and a repeat.
        if optimized and stage.is_noop:
            continue
        # A cache repeats its first pass: only without effect if what is before it repeats anyway.
        if isinstance(stage, ast.Cache) and (not reads_alike or "shuffle" in chain):
            return None
        if not _changes_nothing(stage):
            if not _may_follow(stage, chain, previous if fused else None):
                return None
            chain[stage.name] = stage
        previous = stage
    return chain


def _changes_nothing(stage: Stage) -> bool:
    is_noop = isinstance(stage, ast.Take | ast.Skip | ast.Shard) and stage.is_noop
    return stage.keeps_order or is_noop or isinstance(stage, ast.Cache)


def _may_follow(stage: Stage, chain: Chain, previous: Stage | None) -> bool:
    """Whether a stage continues a chain, after a shuffle that is one with the repeat after it."""
    if stage.name not in _BEFORE or not chain.keys() <= _BEFORE[stage.name]:
        return False
    # A repeat that is not taken out makes a second iterator after the first ends.
    if isinstance(stage, ast.Repeat):
        # Without end is no number of epochs; repeat(1) that is kept makes one more iterator.
        is_counted = stage.count not in (None, 1)
        return is_counted and chain.get("shuffle") in (None, previous)
    # Settings have one seed, not the pair of the kernel.
    return not isinstance(stage, ast.Shuffle) or not isinstance(stage.seed, tuple)


# What a reader is read with: its own settings, over those of the command.


def settings_of_read(settings: ReadSettings, read: ast.Read) -> ReadSettings:
    """Return the settings of one reader: its own, over those of the reader of the command.

    Stages are left out, and so is all that is behind a reader.

    >>> from shardctl.settings.read_settings import ReadSettings
    >>> settings_of_read(ReadSettings(cycle=4, block=2), ast.Read(settings=(("block", 1),)))
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
    if own.get("reverse") or own.get("file_order"):
        kept.pop("reverse", None)
        kept.pop("file_order", None)
    if own.get("cycle", "auto") != "auto":
        kept.pop("cpus", None)
    # A seed implies the switch: a switch of the command that is off must not contradict it.
    if "shuffle_seed" in own:
        kept.pop("shuffle_files", None)
