"""SC026 to SC029 and SC061: datasets and files that cannot be read this way."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from shardctl.core.hosts.modes import DEFAULT_HOST_MODE
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.phrase import Argument, listed, phrase
from shardctl.core.tfds_rules import ORDERED_CYCLE, OTHER_FORMATS, RANDOM_ACCESS_FORMATS
from shardctl.planning.file_formats import why_not_as_dataset, why_short
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Violation, rule


@rule("SC026")
def ordered_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find what TFDS's guard of ordered datasets refuses."""
    settings, names, said = context.settings, list[str](), list[str]()
    if settings.shuffles_files:
        names, said = ["shuffle_files", "shuffle_seed"], ["shuffled files"]
    if settings.cycle not in (None, ORDERED_CYCLE):
        names, said = [*names, "cycle"], [*said, f"cycle {settings.cycle}"]
    if names and context.dataset.ordered:
        yield Violation(
            "the dataset is ordered (disable_shuffling=True), and TFDS refuses "
            + " and ".join(said),
            phrase(
                "leave them out, or ReadConfig(enable_ordering_guard=False) and {ignore=[SC026]}"
            ),
            settings=tuple(names),
        )


@rule("SC027", "as_data_source", for_data_source=True)
def format_refused(context: LintContext) -> Iterator[Violation]:
    """Find a way of reading that the file format does not allow."""
    form, why = context.dataset.file_format, why_not_as_dataset(context.dataset)
    if not context.reads_data_source:
        # Other formats neither reads, and their own libraries have no such settings.
        if why is not None and form not in OTHER_FORMATS:
            yield Violation(why, phrase("as_data_source, said with {as_data_source=True}"))
    elif form in OTHER_FORMATS:
        yield Violation(
            f"TFDS does not read {form} files, through as_data_source neither",
            "write them as array_record, or read them with their own library",
        )
    elif form not in RANDOM_ACCESS_FORMATS:
        yield Violation(
            f"as_data_source does not read {form} files: it raises NotImplementedError",
            "as_dataset, or prepare the dataset as array_record",
        )


@rule("SC028", "specs", "eval", "as_data_source", for_data_source=True)
def parquet_part(context: LintContext) -> Iterator[Violation]:
    """Find a subsplit that begins or ends inside a Parquet shard."""
    if not context.reads_data_source or context.dataset.file_format != "parquet":
        return
    for read in context.reads:
        ranges = context.ranges_of_host(read)
        num_asked = sum(piece.num_examples for piece in ranges)
        num_read = sum(map(num_in_whole_shards, ranges))
        if num_read != num_asked:
            yield Violation(
                f"as_data_source hands out {num_read:,} examples in place of {num_asked:,}, every "
                "Parquet shard it touches whole",
                "slice by shards, as in [:3shard], or read array_record files",
                read,
            )


def num_in_whole_shards(piece: SplitRange) -> int:
    """Return how many examples the shards that a range touches hold.

    >>> from shardctl.core.dataset.dataset import Split
    >>> split = Split(name="train", shard_lengths=(15, 15))
    >>> num_in_whole_shards(SplitRange(split=split, start=0, stop=5))
    15
    """
    shards, offsets = piece.shards(), piece.split.offsets
    return offsets[bisect_left(offsets, piece.stop)] - offsets[shards.start] if len(shards) else 0


@rule("SC029", for_data_source=True)
def unread_settings(context: LintContext) -> Iterator[Violation]:
    """Find settings of tf.data where it is not used."""
    settings = context.settings
    given = {
        "shuffle_files": settings.shuffles_files,
        "shuffle_seed": settings.shuffle_seed is not None,
        "cycle": settings.cycle is not None,
        "buffer": settings.buffer is not None,
        "repeat_files": settings.repeat_files,
        "reverse": settings.reverse,
        "file_order": settings.file_order is not None,
        "host_by": settings.host_by != DEFAULT_HOST_MODE,
    }
    names = tuple(name for name, is_given in given.items() if is_given)
    if names and context.reads_data_source:
        named = listed(map(Argument, names), ", ")
        why = phrase("as_data_source reads none of {}: a sampler decides the order", named)
        yield Violation(why, "leave them out, or read with as_dataset", settings=names)


@rule("SC061", "specs", "eval", for_data_source=True)
def short_parquet(context: LintContext) -> Iterator[Violation]:
    """Find Parquet shards of more examples than TFDS's writer keeps."""
    pieces = [piece for read in context.reads for piece in read.resolved.ranges]
    fix = "count the files with `shardctl verify`; write another format, or more shards"
    for split in {piece.split.name: piece.split for piece in pieces}.values():
        why = why_short(context.dataset, split)
        if why is not None:
            yield Violation(why, fix)
