"""SC018, SC02x: settings of the reader that are not stated, fail, or are left to a machine."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import unstated_reading
from shardctl.core.settings.reads import settings_of_read
from shardctl.core.settings.short_form import stages_of
from shardctl.core.stages.stages import Map, Prefetch, Read, Take
from shardctl.core.tfds_rules import AUTOCACHE_BYTES, CYCLE_PREFETCH_FACTOR, DEFAULT_CYCLE
from shardctl.planning.lint.chains import Chain, chains
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Violation, rule
from shardctl.planning.lint.rules.stages.cached import cut

FILES_OPEN_PER_CYCLE = 1 + CYCLE_PREFETCH_FACTOR  # whatever num_parallel_calls is
OTHER_OPEN_FILES = 16  # what a process holds besides: its streams, sockets, a log


@rule("SC021", "cycle-none", "warning", "a cycle length that the machine decides")
def cycle_none(context: LintContext) -> Iterator[Violation]:
    """Find `interleave_cycle_length=None`."""
    settings = context.settings
    if settings.cycle == "auto":
        cycle = settings.cycle_length(ordered=False)
        yield Violation(
            why=f"the cycle length is a third of the machine's CPUs, {cycle} of {settings.cpus}: "
            "another machine reads in another order",
            fix=phrase("{cycle=}, or another number", cycle=DEFAULT_CYCLE),
            settings=("cycle",),
        )


_REPEATS = ("repeat_files",)


@rule("SC022", "repeat-assertion", "error", "repeat_filenames with the default assertion")
def repeat_assertion(context: LintContext) -> Iterator[Violation]:
    """Find files that repeat under an assertion of how many examples there are."""
    usage = context.usage
    if not usage.assert_cardinality or context.dataset.is_counted:
        return  # without the assertion, or files that TFDS does not read
    for chain in chains(stages_of(context.settings)):
        source = chain.pipeline.source
        if not isinstance(source, Read) or not source.has_cardinality or source.data is not None:
            continue
        reader = settings_of_read(context.settings, source)
        knows_length = reader.host_mode.knows_length if reader.host else context.knows_length
        if not (context.repeats_files(source) and knows_length):
            continue
        for read in context.reads_of(source):
            mode, host = context.host_mode, context.host
            if reader.host is not None:
                mode, host = reader.host_mode, reader.host
            ranges = mode.ranges(read.resolved.ranges, host)
            num_examples = sum(piece.num_examples for piece in ranges)
            if not num_examples or _is_cut(chain, usage.take, num_examples):
                continue
            who = f"{read.spec} ({chain.place})" if chain.place else read.spec
            yield Violation(
                why=f"{who}: reading fails after the first epoch, since TFDS asserts that there "
                f"are no more than {num_examples:,} examples",
                fix=phrase(
                    "ReadConfig(assert_cardinality=False), said with {assert_cardinality=False}"
                ),
                specs=(read.spec,),
                settings=_REPEATS,
            )


def _is_cut(chain: Chain, take: int | None, num_examples: int) -> bool:
    """Whether a take hides the assertion, or may: of a mixture nobody counts here who hands out.

    What is read ahead counts for nothing, since its error comes when it is asked for.
    """
    if take is not None and take <= num_examples:
        return True
    own = [stage for stage in chain.pipeline.stages if not isinstance(stage, Map | Prefetch)]
    found = cut(tuple(own))
    if found is not None and found[1] <= num_examples:
        return True
    return any(isinstance(stage, Take) and stage.count >= 0 for stage in chain.behind)


@rule("SC023", "repeat-autocache", "warning", "repeat_filenames under TFDS's cache")
def repeat_autocache(context: LintContext) -> Iterator[Violation]:
    """Find a cache over a stream without end."""
    if not (context.repeats_files() and context.usage.try_autocache):
        return
    if context.dataset.is_counted:
        return  # files that TFDS does not read
    sizes = [split.num_bytes for split in context.dataset.splits]
    num_bytes = sum(size for size in sizes if size is not None)
    if None in sizes or not 0 < num_bytes <= AUTOCACHE_BYTES:
        return
    for read in (*context.trained, *context.evaluated):
        # An InputContext takes its files later, so it does not count here.
        if not context.reshuffles_files or context.files_asked_for(read) == 1:
            yield Violation(
                why=f"{read.spec}: TFDS caches this small dataset, and the cache of a stream "
                "without end grows for ever",
                fix=phrase("ReadConfig(try_autocache=False), said with {try_autocache=False}"),
                specs=(read.spec,),
                settings=_REPEATS,
            )


@rule("SC024", "open-files", "error", "more files open than the system allows")
def open_files(context: LintContext) -> Iterator[Violation]:
    """Find an interleave that opens more files than a process may."""
    limit, settings = context.usage.max_open_files, context.settings
    if limit is None:
        return
    cycle = settings.cycle_length(ordered=context.dataset.ordered)
    for read in (*context.trained, *context.evaluated):
        num_open = FILES_OPEN_PER_CYCLE * cycle
        if not context.repeats_files():
            num_open = min(num_open, context.files_of_host(read))
        if num_open + OTHER_OPEN_FILES > limit:
            fitting = max((limit - OTHER_OPEN_FILES) // FILES_OPEN_PER_CYCLE, 1)
            yield Violation(
                why=f"{read.spec}: cycle {cycle:,} and its read-ahead hold {num_open:,} files "
                f"open, and a process may open {limit:,}",
                fix=phrase("{cycle=}, or ulimit -n {}", num_open + OTHER_OPEN_FILES, cycle=fitting),
                specs=(read.spec,),
                settings=("cycle", "open_files"),
            )


@rule("SC025", "idle-cycle", "notice", "a cycle longer than there are files")
def idle_cycle(context: LintContext) -> Iterator[Violation]:
    """Find a cycle, asked for, that there are too few files for."""
    settings = context.settings
    if not isinstance(settings.cycle, int) or context.repeats_files():
        return
    for read in context.trained:
        num_files = context.files_of_host(read)
        if 0 < num_files < settings.cycle:
            files = "1 file" if num_files == 1 else f"{num_files:,} files"
            yield Violation(
                why=f"{read.spec}: a cycle of {settings.cycle:,} mixes {files}, as many as a host "
                "reads",
                fix=phrase("{cycle=}, more shards, or {buffer=N}", cycle=num_files),
                specs=(read.spec,),
                settings=("cycle",),
            )


@rule("SC018", "assumed-reader", "warning", "files without metadata, read as TFDS reads its own")
def assumed_reader(context: LintContext) -> Iterator[Violation]:
    """Find files without metadata whose reading nobody stated."""
    for read in (*context.trained, *context.evaluated):
        unstated = unstated_reading(
            context.settings, is_counted=context.dataset.is_counted, num_files=read.num_files
        )
        if unstated is not None:
            yield Violation(
                why=f"{read.spec}: no metadata says how these files are read; TFDS's default "
                f"{unstated} is assumed",
                fix=phrase(
                    "{cycle=1} for plain TFRecordDataset(files), {cycle=C} and {block=B} for "
                    "interleave"
                ),
                specs=(read.spec,),
                settings=("cycle", "block"),
            )
