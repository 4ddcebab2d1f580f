"""Stages as the settings that say the same, where there are such settings; and the other way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings

if TYPE_CHECKING:
    from shardctl.core.stages.stages import Pipeline


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
    from shardctl.core.settings.chain import chain_of
    from shardctl.core.settings.reads import settings_of_read
    from shardctl.core.stages.stages import Read

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
    if chain.shard is not None:
        if reader.host is not None:  # two ways to share, one after the other
            return settings
        host = Host(index=chain.shard.index, count=chain.shard.num_shards)
        reader = replace(reader, host=host, host_by="examples")
    if chain.shuffle is not None:
        shuffle, seed = chain.shuffle, chain.shuffle.seed
        reader = replace(
            reader,
            buffer=shuffle.buffer,
            buffer_seed=None if isinstance(seed, tuple) else seed,  # a chain has no pair
            buffer_reshuffle=shuffle.reshuffle,
        )
    if chain.batch is not None:
        reader = replace(reader, batch=chain.batch.size, drop_remainder=chain.batch.drop_remainder)
    epochs = None if chain.repeat is None else chain.repeat.count
    return reader if epochs is None else replace(reader, epochs=epochs)


def stages_of(settings: ReadSettings) -> Pipeline:
    """Return the stages that settings say, in whichever form.

    Files that repeat without end have no repeat behind them.

    >>> from shardctl.core.stages.text import text_of
    >>> text_of(stages_of(ReadSettings(buffer=10, buffer_seed=3, batch=2)))
    'shuffle(10, seed=3) | batch(2)'
    """
    if settings.stages is not None:
        return settings.stages
    from shardctl.core.settings.chain import Chain
    from shardctl.core.stages.stages import Batch, Pipeline, Repeat, Shard, Shuffle

    host = settings.host if settings.host_mode.reads_all else None
    chain = Chain(
        shard=None if host is None else Shard(num_shards=host.count, index=host.index),
        shuffle=None
        if settings.buffer is None
        else Shuffle(
            buffer=settings.buffer,
            seed=settings.buffer_seed,
            reshuffle=settings.buffer_reshuffle,
        ),
        repeat=None
        if settings.epochs == 1 or settings.repeat_files
        else Repeat(count=settings.epochs),
        batch=None
        if settings.batch is None
        else Batch(size=settings.batch, drop_remainder=settings.drop_remainder),
    )
    return Pipeline(stages=chain.stages)
