"""SC018, SC02x and SC061: settings of the reader and formats of files that cannot be read so."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from shardctl.base import tfds_rules
from shardctl.base.phrase import option
from shardctl.base.text import counted
from shardctl.order.resolved_spec import why_not_as_dataset, why_short
from shardctl.settings.read_settings import ReadSettings, unstated_reading
from shardctl.spec.subsplit import SplitRange
from shardctl.stages import stages as ast
from shardctl.verbs.lint.context import LintContext, of_type
from shardctl.verbs.lint.rule import Violation, rule

FILES_OPEN_PER_CYCLE = 1 + tfds_rules.CYCLE_PREFETCH_FACTOR  # whatever num_parallel_calls is
OTHER_OPEN_FILES = 16  # what a process holds besides: its streams, sockets, a log


@rule("SC021", "cycle")
def cycle_none(context: LintContext) -> Iterator[Violation]:
    """Find `interleave_cycle_length=None`."""
    settings = context.settings
    if settings.cycle == "auto":
        cycle = settings.cycle_length(ordered=False)
        third = f"the cycle length is a third of the machine's CPUs, {cycle} of {settings.cpus}"
        why = f"{third}: another machine reads in another order"
        yield Violation(why, f"--cycle {tfds_rules.DEFAULT_CYCLE}, or another number")


@rule("SC022", "repeat_files")
def repeat_assertion(context: LintContext) -> Iterator[Violation]:
    """Find files that repeat under an assertion of how many examples there are."""
    usage = context.usage
    if not usage.assert_cardinality or usage.take or context.dataset.is_counted:
        return  # without the assertion, or cut before it, or files that TFDS does not read
    for chain in context.chains:
        if any(take.count >= 0 for take in of_type(chain.pipeline.stages + chain.behind, ast.Take)):
            continue  # which may end the stream in time
        source = chain.pipeline.source
        if (
            not isinstance(source, ast.Read)
            or not source.has_cardinality
            or source.data is not None
        ):
            continue
        reader, mode, host = context.settings_of(source), context.settings.host_mode, context.host
        if reader.host is not None:
            mode, host = reader.host_mode, reader.host
        knows_length = mode.knows_length if reader.host else context.knows_length
        for read in context.reads_of(source) if reader.is_endless and knows_length else ():
            ranges = mode.ranges(read.resolved.ranges, host)
            num_examples = sum(piece.num_examples for piece in ranges)
            if num_examples:
                who = f"{read.spec} ({chain.place})" if chain.place else read.spec
                most = f"TFDS asserts that there are no more than {num_examples:,} examples"
                why = f"{who}: reading fails after the first epoch, since {most}"
                fix = "ReadConfig(assert_cardinality=False), and --no-assert-cardinality here"
                yield Violation(why, fix, specs=(read.spec,))


@rule("SC023", "repeat_files")
def repeat_autocache(context: LintContext) -> Iterator[Violation]:
    """Find a cache over a stream without end, of files that TFDS reads."""
    # TFDS caches a dataset of known size up to its limit, by itself.
    caches = context.settings.is_endless and context.usage.try_autocache
    sizes = [split.num_bytes for split in context.dataset.splits]
    num_bytes = sum(size for size in sizes if size is not None)
    if not caches or None in sizes or not 0 < num_bytes <= tfds_rules.AUTOCACHE_BYTES:
        return
    for read in () if context.dataset.is_counted else context.used:
        # An InputContext takes its files later, so it does not count here.
        if not context.reshuffles_files or context.files_asked_for(read) == 1:
            grows = "the cache of a stream without end grows until memory runs out"
            fix = "ReadConfig(try_autocache=False), and --no-autocache here"
            yield Violation(f"TFDS caches this small dataset, and {grows}", fix, read)


@rule("SC024", "cycle", "open_files")
def open_files(context: LintContext) -> Iterator[Violation]:
    """Find an interleave that opens more files than a process may."""
    limit, settings = context.usage.max_open_files, context.settings
    cycle = settings.cycle_length(ordered=context.dataset.ordered)
    for read in () if limit is None else context.used:
        # Besides the files of the cycle, the interleave opens those it reads ahead.
        num_open = FILES_OPEN_PER_CYCLE * cycle
        if not settings.is_endless:
            num_open = min(num_open, context.files_of_host(read))
        if limit is not None and num_open + OTHER_OPEN_FILES > limit:
            # The largest cycle that the limit allows.
            fitting = max((limit - OTHER_OPEN_FILES) // FILES_OPEN_PER_CYCLE, 1)
            held = f"cycle {cycle:,} and its read-ahead hold {num_open:,} files open"
            fix = f"--cycle {fitting}, or ulimit -n {num_open + OTHER_OPEN_FILES}"
            yield Violation(f"{held}, and a process may open {limit:,}", fix, read)


@rule("SC025", "cycle")
def idle_cycle(context: LintContext) -> Iterator[Violation]:
    """Find a cycle, asked for, that there are too few files for."""
    cycle = context.settings.cycle
    files = [*map(context.files_of_host, context.used)]
    most = max([*files, *(split.num_shards for split in context.dataset.splits)])
    for read in () if context.settings.is_endless else context.trained:
        num_files = context.files_of_host(read)
        if isinstance(cycle, int) and 0 < num_files < cycle:
            why = (
                f"a cycle of {cycle:,} mixes {counted(num_files, 'file')}, as many as a host reads"
            )
            # Every order stays, unless other hosts, splits or specs have more files.
            same = num_files == most and context.num_hosts == 1 and not context.writes_stages
            fix = f"--cycle {num_files}, more shards, or --buffer N"
            if same:
                fix = f"--cycle {num_files} is the same order; more shards or --buffer N mix more"
            yield Violation(why, fix, read, change={"cycle": num_files} if same else {})


@rule("SC018", "cycle", "block")
def assumed_reader(context: LintContext) -> Iterator[Violation]:
    """Find files without metadata whose reading is not stated."""
    fix = "--cycle 1 for plain TFRecordDataset(files), --cycle C and --block B for interleave"
    for read in context.used:
        unstated = unstated_reading(
            context.settings, is_counted=context.dataset.is_counted, num_files=read.num_files
        )
        if unstated is not None:
            why = f"no metadata says how these files are read; TFDS's default {unstated} is assumed"
            yield Violation(why, fix, read)


# SC026 to SC029 and SC061: datasets and files that cannot be read this way.


@rule("SC026")
def ordered_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find what TFDS's guard of ordered datasets refuses."""
    settings, names, said = context.settings, list[str](), list[str]()
    if settings.shuffles_files:
        names, said = ["shuffle_files", "shuffle_seed"], ["shuffled files"]
    if settings.cycle not in (None, tfds_rules.ORDERED_CYCLE):
        names, said = [*names, "cycle"], [*said, f"cycle {settings.cycle}"]
    if names and context.dataset.ordered:
        refused = f"TFDS refuses {' and '.join(said)}"
        why = f"the dataset is ordered (disable_shuffling=True), and {refused}"
        fix = "leave them out, or ReadConfig(enable_ordering_guard=False) and --ignore SC026"
        yield Violation(why, fix, settings=tuple(names))


@rule("SC027", "as_data_source", for_data_source=True)
def format_refused(context: LintContext) -> Iterator[Violation]:
    """Find a way of reading that the file format does not allow."""
    form, why = context.dataset.file_format, why_not_as_dataset(context.dataset)
    if not context.reads_data_source:
        # Other formats neither reads, and their own libraries have no such settings.
        if why is not None and form not in tfds_rules.OTHER_FORMATS:
            yield Violation(why, "read with as_data_source, and --as-data-source here")
    elif form in tfds_rules.OTHER_FORMATS:
        why = f"TFDS does not read {form} files, through as_data_source neither"
        yield Violation(why, "write them as array_record, or read them with their own library")
    elif form not in tfds_rules.RANDOM_ACCESS_FORMATS:
        why = f"as_data_source does not read {form} files: it raises NotImplementedError"
        yield Violation(why, "as_dataset, or prepare the dataset as array_record")


@rule("SC028", "specs", "eval", "as_data_source", for_data_source=True)
def parquet_part(context: LintContext) -> Iterator[Violation]:
    """Find a subsplit that begins or ends inside a Parquet shard."""
    if not context.reads_data_source or context.dataset.file_format != "parquet":
        return
    for read in context.reads:
        ranges = context.ranges_of_host(read)
        num_asked = sum(piece.num_examples for piece in ranges)
        # TFDS takes Parquet files whole, whatever part of a file the instruction names.
        num_read = sum(map(num_in_whole_shards, ranges))
        if num_read != num_asked:
            given = f"as_data_source yields {num_read:,} examples in place of {num_asked:,}"
            fix = "slice by shards, as in [:3shard], or read array_record files"
            yield Violation(f"{given}, every Parquet shard it touches whole", fix, read)


def num_in_whole_shards(piece: SplitRange) -> int:
    """Return how many examples the shards that a range touches hold.

    >>> from shardctl.dataset.dataset import Split
    >>> split = Split(name="train", shard_lengths=(15, 15))
    >>> num_in_whole_shards(SplitRange(split=split, start=0, stop=5))
    15
    """
    shards, offsets = piece.shards(), piece.split.offsets
    return offsets[bisect_left(offsets, piece.stop)] - offsets[shards.start] if len(shards) else 0


_OF_TF_DATA = (
    *("shuffle_seed", "reshuffle", "cycle", "buffer", "buffer_seed", "buffer_reshuffle"),
    *("repeat_files", "reverse", "file_order", "host_by"),
)


@rule("SC029", for_data_source=True)
def unread_settings(context: LintContext) -> Iterator[Violation]:
    """Find settings of tf.data where it is not used."""
    settings, bare = context.settings, ReadSettings()
    given = [name for name in _OF_TF_DATA if getattr(settings, name) != getattr(bare, name)]
    names = (*(["shuffle_files"] * settings.shuffles_files), *given)
    if names and context.reads_data_source:
        named = ", ".join(map(option, names))
        why = f"as_data_source reads none of {named}: a sampler decides the order"
        fix, change = "leave them out, or read with as_dataset", {}
        if why_not_as_dataset(context.dataset) is not None:
            # Only here is there one cure: no as_dataset reads this format, so the settings can go.
            fix, change = "leave them out", dict.fromkeys(names)
        yield Violation(why, fix, settings=names, change=change)


@rule("SC061", "specs", "eval", for_data_source=True)
def short_parquet(context: LintContext) -> Iterator[Violation]:
    """Find Parquet shards of more examples than TFDS's writer keeps."""
    pieces = [piece for read in context.reads for piece in read.resolved.ranges]
    fix = "count the files with `shardctl verify`; write another format, or more shards"
    for split in {piece.split.name: piece.split for piece in pieces}.values():
        why = why_short(context.dataset, split)
        if why is not None:
            yield Violation(why, fix)
