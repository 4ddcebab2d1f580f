"""The rules of the linter: one kind of finding, one small pure function."""

from __future__ import annotations

from shardctl.planning.lint.rule import Rule
from shardctl.planning.lint.rules import (
    formats,
    hosts,
    left_out,
    loaders,
    reader_settings,
    seeds,
    shuffling,
    subsplits,
)
from shardctl.planning.lint.rules import hosts as host_shuffles
from shardctl.planning.lint.rules import left_out as ordering
from shardctl.planning.lint.rules import seeds as passes
from shardctl.planning.lint.rules import shuffling as unshuffled
from shardctl.planning.lint.rules.stages import cached, mixtures, shuffled
from shardctl.planning.lint.rules.stages import shuffled as counts

LINT_RULES: tuple[Rule, ...] = (
    shuffling.one_order,
    shuffling.small_buffer,
    shuffling.files_only,
    shuffling.one_file_shuffle,
    shuffling.buffer_of_one,
    shuffling.no_seed,
    ordering.not_deterministic,
    ordering.racy_interleave,
    ordering.buffer_never_fills,
    seeds.global_seed,
    seeds.equal_seeds,
    seeds.drawn_seed,
    passes.keras_pairs,
    passes.extra_iterator,
    passes.racy_pass,
    unshuffled.no_shuffle,
    reader_settings.assumed_reader,
    reader_settings.cycle_none,
    reader_settings.repeat_assertion,
    reader_settings.repeat_autocache,
    reader_settings.open_files,
    reader_settings.idle_cycle,
    formats.ordered_shuffle,
    formats.format_refused,
    formats.parquet_part,
    formats.unread_settings,
    hosts.few_shards,
    hosts.odd_shards,
    hosts.example_sharding,
    hosts.uneven_hosts,
    host_shuffles.same_permutation,
    host_shuffles.unshared_order,
    host_shuffles.idle_hosts,
    subsplits.leak,
    subsplits.overlap,
    subsplits.repeated_part,
    subsplits.surprising_spec,
    subsplits.gap,
    left_out.take_for_slice,
    left_out.dropped_in_evaluation,
    formats.short_parquet,
    shuffled.shuffled_split,
    shuffled.shuffled_batches,
    cached.cached_shuffle,
    cached.unfilled_cache,
    mixtures.drifting_mixture,
    mixtures.cut_mixture,
    counts.open_count,
    counts.nothing_left,
    loaders.worker_batches,
    loaders.lost_remainder,
    loaders.host_permutation,
    loaders.doubled_example,
    loaders.overlapping_window,
    loaders.worker_order,
    loaders.repeated_in_evaluation,
    loaders.hosts_read_everything,
    loaders.idle_workers,
    loaders.small_stream_buffer,
    loaders.lost_stride,
)
