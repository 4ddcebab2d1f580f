"""A plan to resume: the plan file; for people where it stopped, what is left, how to read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from shardctl.core.columns import RecordStream, picked
from shardctl.core.resume.resume_plan import ResumePlan, calls_chained
from shardctl.core.resume.unseeded_buffer import UnseededBuffer
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.plan_file import instruction_rows, plan_json, plan_yaml
from shardctl.planning.resume.proof import BrokenPromise, Proof
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.step_rows import heading, settings_words
from shardctl.rendering.text.tables import (
    Look,
    Screen,
    columns,
    left_out,
    paragraph,
    paragraphs,
    table_pieces,
)
from shardctl.rendering.text.written import resume_call

_ROWS = 20  # file instructions, hosts or broken promises shown on a terminal

_COLUMNS = columns("*filename=file skip take examples_in_shard=of")
_HOST_COLUMNS = columns("host examples instructions *first_file *last_file")
_SOURCE_COLUMNS = columns("<source consumed")


def resume_table(
    plan: ResumePlan, proof: Proof | None, screen: Screen, *, plan_file: str | None = None
) -> Iterator[str]:
    """Yield the state, the instructions and how to read them; `plan_file` is where they are."""
    title, *state = _state(plan, every_count=not screen.abridged)
    yield from heading(title, plan.assumptions, screen, "bold")
    yield from paragraphs(screen, *state)
    if plan.hosts:
        yield from table_pieces(_HOST_COLUMNS, _host_rows(plan), screen, keep=_ROWS)
    elif len(plan.sources) > 1:
        of_sources = [(str(source), f"{source.consumed:,}") for source in plan.sources]
        yield from table_pieces(_SOURCE_COLUMNS, of_sources, screen, keep=_ROWS)
    elif _are_scattered(plan):
        yield paragraph(
            f"they are {plan.num_instructions:,} runs of neighbours; --format json lists them",
            screen,
        )
    elif len(plan.instructions):
        rows = plan.instructions.records([column.field for column in _COLUMNS])
        yield from table_pieces(_COLUMNS, rows, screen, keep=_ROWS)
    if plan.remaining:
        yield from paragraphs(screen, *_how(plan, plan_file))
    elif plan.unseeded is not None and plan.unseeded.emitted:
        yield paragraph(_without_seed(plan.unseeded, len(plan.from_consumed) or 1), screen)
    if proof is not None:
        style: Look = "" if proof.holds else "error"
        yield from paragraphs(screen, *proof_lines(proof, screen), style=style)


def summary(plan: ResumePlan) -> Iterator[str]:
    """Yield a few lines: what was read, where it stopped, what is left, and the promise."""
    title, *state = _state(plan, every_count=False)
    yield from (title, *(f"assumed: {text}" for text in plan.assumptions), *state)
    if plan.remaining:
        yield _promise(plan)


def _state(plan: ResumePlan, *, every_count: bool) -> tuple[str, str, str]:
    title = f"{plan.spec} of {plan.dataset.title}: {settings_words(plan.pipeline)}"
    return title, _stopped(plan, every_count=every_count), _left(plan)


def resume_json(plan: ResumePlan, proof: Proof | None) -> Iterator[str]:
    """Yield the plan file as JSON, the proof last."""
    return plan_json(_in_options(plan), _proof_field(proof))


def resume_yaml(plan: ResumePlan, proof: Proof | None) -> Iterator[str]:
    """Yield the plan file as YAML, the proof last."""
    return plan_yaml(_in_options(plan), _proof_field(proof))


def _in_options(plan: ResumePlan) -> ResumePlan:
    """Return a plan whose texts name the options of the command line."""
    assumptions, advice = (tuple(map(as_options, said)) for said in (plan.assumptions, plan.advice))
    return replace(plan, assumptions=assumptions, advice=advice)


def _are_scattered(plan: ResumePlan) -> bool:
    """Whether a shuffle left more runs of neighbours than files, too many to show."""
    if plan.stop is None:
        return False
    reads = plan.instructions
    files = {*zip(reads.split.tolist(), reads.shard.tolist(), strict=True)}
    return len(reads) > len(files)


def resume_rows(plan: ResumePlan, proof: Proof | None = None) -> RecordStream:
    """Return a CSV row for each file instruction; a proof has none."""
    return instruction_rows(plan)


def proof_lines(proof: Proof, screen: Screen) -> Iterator[str]:
    """Yield a line for each broken promise, and the proof in the last."""
    yield from promise_lines(proof.broken, _ROWS, screen)
    yield proof_line(proof)


def promise_lines(broken: Sequence[BrokenPromise], keep: int, screen: Screen) -> Iterator[str]:
    """Yield a line for each broken promise; where the screen abridges, for the first of many."""
    shown = broken[:keep] if screen.abridged else broken
    for promise in shown:
        yield f"broken promise: {promise}"
    if len(shown) < len(broken):
        yield left_out(len(broken) - len(shown), "broken promise", screen)


def proof_line(proof: Proof) -> str:
    """Return a proof in a line.

    >>> proof_line(Proof(compared=1000, lost=0, repeated=0, moved=0, exact=True))
    'proof: lost 0, repeated 0, moved 0 of 1,000 examples'
    """
    if proof.allowed is not None:
        return (
            f"proof: lost at most {proof.lost:,}, repeated at most {proof.repeated:,}, whatever "
            f"the seed was; {_examples(proof.compared)} read"
        )
    moved = "" if proof.moved is None else f", moved {proof.moved:,}"
    counts = f"lost {proof.lost:,}, repeated {proof.repeated:,}"
    if proof.of_inputs:
        return (
            f"proof: {counts} of what the buffer is given, which has no end; of the next "
            f"{_examples(proof.compared)} {proof.moved:,} are others, or elsewhere"
        )
    return f"proof: {counts}{moved} of {_examples(proof.compared)}"


def _proof_field(proof: Proof | None) -> Document:
    """Return the field of a proof in a plan file, no field where there is no proof."""
    if proof is None:
        return {}
    found = picked(proof, "compared lost repeated moved")
    if proof.allowed is not None:
        found["allowed"] = dict(zip(("lost", "repeated"), proof.allowed, strict=True))
    if proof.broken:
        found["broken"] = list(map(asdict, proof.broken))
    return {"proof": found}


def _stopped(plan: ResumePlan, *, every_count: bool) -> str:
    if plan.from_seen:
        return f"seen: {_examples(plan.consumed)}"
    if plan.from_consumed:
        counts = [f"{count:,}" for count in dict.fromkeys(plan.from_consumed)]
        few = counts if every_count or len(counts) == 1 else [counts[0], counts[-1]]
        each = " .. ".join(few) if len(few) < 3 else ", ".join(few)
        return f"stopped: {len(plan.from_consumed)} hosts, each after {each} examples"
    place = f"stopped: after {_examples(plan.consumed)}"
    if plan.continued_by == "shardctl.tfds":
        return place if len(plan.sources) > 1 else f"{place}, in epoch {plan.epoch}"
    if plan.unseeded is None or plan.unseeded.first_read < plan.unseeded.num_read:
        place += f", in epoch {plan.epoch}"
    whole, rest = _batches(plan)
    if whole is not None:
        place += f", {counted(whole, 'batch', 'batches')}"
        place += f" and {_examples(rest)}" if rest else ""
    where = plan.reader_state
    if where is None or not plan.remaining:
        return place
    place += f"; {where.open_files:,} {'file' if where.open_files == 1 else 'files'} open, "
    place += f"{where.next_file:,} of {where.num_files:,} opened"
    if where.block_offset:
        place += f", {where.block_offset:,} of a block of {plan.settings.block:,} read"
    return place


def _batches(plan: ResumePlan) -> tuple[int | None, int]:
    """Return how many whole batches were handed out, None without any, and examples of the next."""
    batch = plan.settings.batch
    if plan.stop is not None:
        return plan.stop.steps, plan.stop.in_batch
    if batch is None:
        return None, 0
    whole, rest = divmod(plan.consumed, batch)
    # The last batch of the order was not full.
    return (whole, rest) if plan.remaining_total else (whole + bool(rest), 0)


def _left(plan: ResumePlan) -> str:
    if not plan.has_end:
        return "left: the pipeline has no end"
    if plan.continued_by == "shardctl.tfds" and plan.remaining:
        return f"left: {_examples(plan.remaining)} of the pipeline"
    if not plan.remaining:
        if plan.unseeded is not None and plan.unseeded.most_lost:
            return "left: nothing, the buffer had read the order to its end"
        return "left: nothing, the order is at its end"
    if plan.stop is not None:
        left = f"left: {_examples(plan.remaining)} of epoch {plan.epoch}"
        more = plan.remaining_total != plan.remaining
        return f"{left}, {plan.remaining_total:,} in all" if more else left
    of = " of the stream" if plan.is_one_stream else f" of epoch {plan.epoch}"
    left = f"left: {_examples(plan.remaining)}{'' if plan.from_seen else of}"
    left += f" in {counted(plan.num_instructions, 'file instruction')}"
    further = plan.num_further_epochs
    return f"{left}, then {counted(further, 'epoch')}" if further else left


def _host_rows(plan: ResumePlan) -> Iterator[Sequence[str]]:
    for host in plan.hosts:
        reads = host.instructions
        ends = (reads.filename(0), reads.filename(len(reads) - 1)) if len(reads) else ("", "")
        yield (str(host.index), f"{host.num_examples:,}", f"{len(reads):,}", *ends)


def _promise(plan: ResumePlan) -> str:
    """Return what the plan promises."""
    if plan.continued_by == "shardctl.tfds":
        return (
            "exact: shardctl.tfds builds the stages again and goes on behind what they have handed "
            "out; file instructions alone do not continue them."
        )
    if plan.mode == "exact":
        return "exact: the order continues id by id."
    if plan.unseeded is not None:
        return _without_seed(plan.unseeded, len(plan.from_consumed) or 1)
    held = len(plan.pending or ())
    if plan.mode == "exact-order":
        return (
            f"exact order: the instructions feed the shuffle buffer as it was left, with "
            f"{_examples(held)} in it; shardctl.tfds replays it."
        )
    runs = counted(plan.num_pending_instructions, "instruction")
    first = f" The first {runs} read the {_examples(held)} that the buffer held."
    first = first if held and plan.num_pending_instructions else ""
    if plan.is_one_stream:
        return (
            "not exactly once: a stream without end has no rest that could be read whole. Nothing "
            "that was handed out comes again but by the repeat, but which of the examples in the "
            f"buffer and behind it are the next {plan.remaining:,} may be another choice.{first}"
        )
    drops = plan.hosts and plan.settings.drop_remainder
    dropped = ", but for what each new host drops of its last batch" if drops else ""
    return f"exactly once: every example that is left, in another order{dropped}.{first}"


def _how(plan: ResumePlan, plan_file: str | None) -> Iterator[str]:
    """Yield what the plan promises, and what to read it with."""
    yield _promise(plan)
    if plan.continued_by == "shardctl.tfds":
        file = "plan.yaml" if plan_file is None else plan_file
        written = "" if plan_file else ", with the file that --output plan.yaml writes"
        yield f"in Python: {resume_call(plan, file)}{written}"
        yield (
            f"or, with the script's own dataset: shardctl.tfds.resume_like(ds, "
            f"consumed={plan.consumed})"
        )
        return
    if plan.read_config is None:
        if plan.after_read:
            yield f"go on with: {', then '.join(map(str, plan.after_read))}"
        yield from (f"- {as_options(line)}" for line in plan.advice)
        if plan.stop is not None:
            yield "in Python: --format python writes the code that reads what is left"
        return
    names = ("interleave_cycle_length", "interleave_block_length")
    config = ", ".join(f"{name}={plan.read_config[name]}" for name in names)
    calls = calls_chained(plan.after_read)
    yield (
        f"read with: tfds.ReadConfig({config}, experimental_interleave_sort_fn=..) that returns "
        f"these instructions, shuffle_files=False{', then ' + calls if calls else ''}"
    )
    does_so = "shardctl.tfds does so from the plan file that --output plan.yaml writes"
    yield f"in Python: {resume_call(plan, plan_file) if plan_file else does_so}"
    if plan.further_epochs:
        yield _further(plan)


def _without_seed(buffer: UnseededBuffer, num_hosts: int = 1) -> str:
    """Return what a buffer whose seed is not known loses and repeats, or those of several hosts.

    >>> from shardctl.core.resume.unseeded_buffer import behind_buffer
    >>> print(_without_seed(behind_buffer(
    ...     buffer_size=9, emitted=50, num_elements=99, risk=None)))
    at most once: the buffer had read 58 examples of its epoch. These are passed by: nothing is \
repeated, the 8 that it held are lost, whatever its seed was.
    """
    mode = "at most once" if buffer.risk is None else "at least once"
    one = num_hosts == 1
    who = "the buffer" if one else f"the buffers of the {num_hosts} hosts"
    it, its = ("it", "its seed was") if one else ("they", "their seeds were")
    if not buffer.emitted:
        return f"{mode}: {who} held nothing yet, so that nothing is repeated or lost."
    epoch = " of its epoch" if one else ""
    read = f"{mode}: {who} had read {_examples(buffer.num_read)}{epoch}."
    if not buffer.num_read_again:
        lost = buffer.most_lost
        held = f", the {lost:,} that {it} held are lost" if lost else " or lost"
        return f"{read} These are passed by: nothing is repeated{held}, whatever {its}."
    if not buffer.first_read:
        return (
            f"{read} All of them are read again: {buffer.least_repeated:,} are repeated and none "
            f"is lost, whatever {its}."
        )
    buffers = counted(buffer.buffers_again, "buffer") + (" of them" if one else " a host at most")
    again = f"{buffer.num_read_again:,}, {buffers},"
    return (
        f"{read} The last {again} are read again: {buffer.least_repeated:,} to "
        f"{buffer.most_repeated:,} are repeated; {buffer.expected_lost:.2g} are lost on the "
        f"average of all seeds, which is below the risk of {buffer.risk:g}, and at most "
        f"{buffer.most_lost:,} with any."
    )


def _further(plan: ResumePlan) -> str:
    following = plan.further_epochs[0]
    last = plan.epoch + plan.num_further_epochs
    one = plan.num_further_epochs == 1
    which = f"epoch {last}" if one else f"epochs {following.epoch} to {last}"
    files = "files shuffled with seeds of its own" if following.file_seeds else "the same files"
    if plan.hosts:
        return f"then: {which}, each read whole by the new hosts, {files}"
    mode = "" if plan.unseeded is None else f" --mode {plan.mode}"
    return (
        f"then: {which}, {files}; resume --consumed {following.consumed}{mode} lists the first of "
        "them"
    )


def _examples(count: int) -> str:
    return counted(count, "example")
