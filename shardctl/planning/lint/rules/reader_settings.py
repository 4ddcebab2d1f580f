"""SC018, SC02x: settings of the reader that are not stated, fail, or are left to a machine."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import unstated_reading
from shardctl.core.stages.stages import Map, Prefetch, Read, Take
from shardctl.core.text import counted
from shardctl.core.tfds_rules import AUTOCACHE_BYTES, CYCLE_PREFETCH_FACTOR, DEFAULT_CYCLE
from shardctl.planning.lint.chains import Chain, of_type
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Violation, rule
from shardctl.planning.lint.rules.cached import cut

FILES_OPEN_PER_CYCLE = 1 + CYCLE_PREFETCH_FACTOR  # whatever num_parallel_calls is
OTHER_OPEN_FILES = 16  # what a process holds besides: its streams, sockets, a log


@rule("SC021", "cycle")
def cycle_none(context: LintContext) -> Iterator[Violation]:
    """Find `interleave_cycle_length=None`."""
    settings = context.settings
    if settings.cycle == "auto":
        cycle = settings.cycle_length(ordered=False)
        yield Violation(
            f"the cycle length is a third of the machine's CPUs, {cycle} of {settings.cpus}: "
            "another machine reads in another order",
            phrase("{cycle=}, or another number", cycle=DEFAULT_CYCLE),
        )


@rule("SC022", "repeat_files")
def repeat_assertion(context: LintContext) -> Iterator[Violation]:
    """Find files that repeat under an assertion of how many examples there are."""
    usage = context.usage
    if not usage.assert_cardinality or context.dataset.is_counted:
        return  # without the assertion, or files that TFDS does not read
    for chain in context.chains:
        source = chain.pipeline.source
        if not isinstance(source, Read) or not source.has_cardinality or source.data is not None:
            continue
        reader, mode, host = context.settings_of(source), context.host_mode, context.host
        if reader.host is not None:
            mode, host = reader.host_mode, reader.host
        knows_length = mode.knows_length if reader.host else context.knows_length
        for read in context.reads_of(source) if reader.is_endless and knows_length else ():
            ranges = mode.ranges(read.resolved.ranges, host)
            num_examples = sum(piece.num_examples for piece in ranges)
            if num_examples and not _is_cut(chain, usage.take, num_examples):
                who = f"{read.spec} ({chain.place})" if chain.place else read.spec
                yield Violation(
                    f"{who}: reading fails after the first epoch, since TFDS asserts that there "
                    f"are no more than {num_examples:,} examples",
                    phrase(
                        "ReadConfig(assert_cardinality=False), said with {assert_cardinality=False}"
                    ),
                    specs=(read.spec,),
                )


def _is_cut(chain: Chain, take: int | None, num_examples: int) -> bool:
    """Whether a take hides the assertion, or may: of a mixture nobody counts here who hands out.

    What is read ahead counts for nothing, since its error comes when it is asked for.
    """
    own = [stage for stage in chain.pipeline.stages if not isinstance(stage, Map | Prefetch)]
    found = cut(tuple(own))
    asked = [take] if found is None else [take, found[1]]
    if any(one is not None and one <= num_examples for one in asked):
        return True
    return any(stage.count >= 0 for stage in of_type(chain.behind, Take))


@rule("SC023", "repeat_files")
def repeat_autocache(context: LintContext) -> Iterator[Violation]:
    """Find a cache over a stream without end, of files that TFDS reads."""
    caches = context.settings.is_endless and context.usage.try_autocache
    sizes = [split.num_bytes for split in context.dataset.splits]
    num_bytes = sum(size for size in sizes if size is not None)
    if not caches or None in sizes or not 0 < num_bytes <= AUTOCACHE_BYTES:
        return
    for read in () if context.dataset.is_counted else (*context.trained, *context.evaluated):
        # An InputContext takes its files later, so it does not count here.
        if not context.reshuffles_files or context.files_asked_for(read) == 1:
            yield Violation(
                "TFDS caches this small dataset, and the cache of a stream without end grows for "
                "ever",
                phrase("ReadConfig(try_autocache=False), said with {try_autocache=False}"),
                read,
            )


@rule("SC024", "cycle", "open_files")
def open_files(context: LintContext) -> Iterator[Violation]:
    """Find an interleave that opens more files than a process may."""
    limit, settings = context.usage.max_open_files, context.settings
    cycle = settings.cycle_length(ordered=context.dataset.ordered)
    for read in () if limit is None else (*context.trained, *context.evaluated):
        num_open = FILES_OPEN_PER_CYCLE * cycle
        if not settings.is_endless:
            num_open = min(num_open, context.files_of_host(read))
        if limit is not None and num_open + OTHER_OPEN_FILES > limit:
            fitting = max((limit - OTHER_OPEN_FILES) // FILES_OPEN_PER_CYCLE, 1)
            yield Violation(
                f"cycle {cycle:,} and its read-ahead hold {num_open:,} files open, and a process "
                f"may open {limit:,}",
                phrase("{cycle=}, or ulimit -n {}", num_open + OTHER_OPEN_FILES, cycle=fitting),
                read,
            )


@rule("SC025", "cycle")
def idle_cycle(context: LintContext) -> Iterator[Violation]:
    """Find a cycle, asked for, that there are too few files for."""
    cycle = context.settings.cycle
    for read in () if context.settings.is_endless else context.trained:
        num_files = context.files_of_host(read)
        if isinstance(cycle, int) and 0 < num_files < cycle:
            files = counted(num_files, "file")
            yield Violation(
                f"a cycle of {cycle:,} mixes {files}, as many as a host reads",
                phrase("{cycle=}, more shards, or {buffer=N}", cycle=num_files),
                read,
            )


@rule("SC018", "cycle", "block")
def assumed_reader(context: LintContext) -> Iterator[Violation]:
    """Find files without metadata whose reading nobody stated."""
    fix = phrase(
        "{cycle=1} for plain TFRecordDataset(files), {cycle=C} and {block=B} for interleave"
    )
    for read in (*context.trained, *context.evaluated):
        unstated = unstated_reading(
            context.settings, is_counted=context.dataset.is_counted, num_files=read.num_files
        )
        if unstated is not None:
            why = f"no metadata says how these files are read; TFDS's default {unstated} is assumed"
            yield Violation(why, fix, read)
