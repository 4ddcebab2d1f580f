"""A plan to resume: the plan file; for people where it stopped, what is left, how to read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from shardctl.base.columns import RecordStream, picked
from shardctl.base.text import choices, counted, path_word, shell_line
from shardctl.base.tfds_rules import has_builder
from shardctl.dataset.dataset import Dataset
from shardctl.draw.quantities import counts_between
from shardctl.draw.step_rows import heading, reading_line
from shardctl.draw.tables import Look, Screen, columns, left_out, paragraphs, table_pieces
from shardctl.files.documents import Document
from shardctl.saved.plan_file import instruction_rows, plan_document
from shardctl.saved.resume_plan import ResumePlan, calls_chained
from shardctl.saved.unseeded_buffer import UnseededBuffer
from shardctl.settings.short_form import stages_of
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import ByData
from shardctl.verbs.resume.proof import BrokenPromise, Proof
from shardctl.verbs.resume.rest_of_epoch import WHOLE_STEPS

_ROWS = 20  # file instructions, hosts or broken promises shown on a terminal

_COLUMNS = columns("<filename=file skip take examples_in_shard=of")
_HOST_COLUMNS = columns("host examples instructions <first_file <last_file")
_SOURCE_COLUMNS = columns("<source consumed")


def resume_table(
    plan: ResumePlan, proof: Proof | None, screen: Screen, *, plan_file: str | None = None
) -> Iterator[str]:
    """Yield the state, the instructions and how to read them; `plan_file` is where they are."""
    yield from heading(_title(plan), plan.assumptions, screen, "bold")
    yield from paragraphs(screen, _mode(plan), *_state(plan))
    if plan.hosts:
        yield from table_pieces(_HOST_COLUMNS, _host_rows(plan), screen, keep=_ROWS)
    elif len(plan.sources) > 1:
        of_sources = [(str(source), f"{source.consumed:,}") for source in plan.sources]
        yield from table_pieces(_SOURCE_COLUMNS, of_sources, screen, keep=_ROWS)
    elif len(plan.instructions):
        rows = plan.instructions.records([column.field for column in _COLUMNS])
        yield from table_pieces(_COLUMNS, rows, screen, keep=_ROWS)
    if plan.remaining:
        yield from paragraphs(screen, *_how(plan, plan_file))
    if proof is not None:
        style: Look = "" if proof.holds else "error"
        yield from paragraphs(screen, *proof_lines(proof, screen), style=style)


def summary(plan: ResumePlan) -> Iterator[str]:
    """Yield a few lines: what was read, where it stopped, what is left, and the promise."""
    yield _title(plan)
    yield from (f"assumed: {text}" for text in plan.assumptions)
    yield from (_mode(plan), *_state(plan))


def _title(plan: ResumePlan) -> str:
    return reading_line(plan.spec, plan.dataset, plan.pipeline)


def resume_document(plan: ResumePlan, proof: Proof | None = None) -> Document:
    """Return the plan file, the proof last."""
    if proof is None:
        return plan_document(plan)
    found = picked(proof, "compared lost repeated moved")
    if proof.allowed is not None:
        found["allowed"] = dict(zip(("lost", "repeated"), proof.allowed, strict=True))
    if proof.broken:
        found["broken"] = list(map(asdict, proof.broken))
    return {**plan_document(plan), "proof": found}


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
    yield from (f"broken promise: {promise}" for promise in shown)
    # The screen shows the first few.
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
    counts = f"lost {proof.lost:,}, repeated {proof.repeated:,}{moved}"
    return f"proof: {counts} of {_examples(proof.compared)}"


def _state(plan: ResumePlan) -> Iterator[str]:
    """Yield where the pipeline stopped, where it resumes, and what is left."""
    if plan.from_seen:
        yield f"seen: {_examples(plan.consumed)}"
    elif plan.from_consumed:
        counts = [f"{count:,}" for count in dict.fromkeys(plan.from_consumed)]
        yield f"stopped: {len(plan.from_consumed)} hosts, each after {choices(counts, 8)} examples"
    else:
        stopped, starts = f"stopped: after {_examples(plan.consumed)}", f"epoch {plan.epoch}"
        whole, rest = _batches(plan)
        if whole is not None:
            stopped += f", {counted(whole, 'batch', 'batches')}"
            stopped += f" and {_examples(rest)}" if rest else ""
            if not plan.unseeded:  # else it resumes at no step
                starts += f", {'within ' if rest else ''}step {_step(plan, whole)}"
        yield stopped
        if plan.remaining:
            yield f"resumes: at {starts}, counted from 0"
    yield _left(plan)


def _step(plan: ResumePlan, whole: int) -> str:
    """Return how many steps of its epoch are done; of all epochs where these share a batch."""
    if plan.stop is not None or not plan.epoch or plan.settings.batch is None:
        return str(whole if plan.stop is None else plan.stop.steps_in_epoch)
    # All examples of the order over its epochs are those of one; they must divide into whole
    # batches, else a batch has examples of two epochs.
    size, uneven = divmod(plan.consumed + plan.remaining_total, plan.settings.epochs)
    per_epoch, ragged = divmod(size, plan.settings.batch)
    return f"{whole:,} of all epochs" if uneven or ragged else str(whole - plan.epoch * per_epoch)


def _batches(plan: ResumePlan) -> tuple[int | None, int]:
    """Return how many whole batches were yielded, None without any, and examples of the next."""
    if plan.stop is not None:
        return plan.stop.steps, plan.stop.in_batch
    if plan.settings.batch is None:
        return None, 0
    whole, rest = divmod(plan.consumed, plan.settings.batch)
    # The last batch of the order was not full.
    return (whole, rest) if plan.remaining_total else (whole + bool(rest), 0)


def _left(plan: ResumePlan) -> str:
    if not plan.has_end:
        return "left: the pipeline has no end"
    if not plan.remaining:
        return "left: nothing, this is the end of the order"
    of = " of the stream" if plan.is_one_stream else f" of epoch {plan.epoch}"
    if plan.continued_by == "shardctl.tfds":
        of = " of the pipeline"
    left = f"left: {_examples(plan.remaining)}{'' if plan.from_seen else of}"
    if plan.num_instructions:
        left += f" in {counted(plan.num_instructions, 'file instruction')}"
    further = plan.num_further_epochs
    return f"{left}, then {counted(further, 'epoch')}" if further else left


def _host_rows(plan: ResumePlan) -> Iterator[Sequence[str]]:
    for host in plan.hosts:
        reads = host.instructions
        ends = (reads.filename(0), reads.filename(len(reads) - 1)) if len(reads) else ("", "")
        yield (str(host.index), f"{host.num_examples:,}", f"{len(reads):,}", *ends)


def _mode(plan: ResumePlan) -> str:
    """Return the mode of a plan, why it is that one, and what it promises."""
    promise, why = "the order continues id by id", "no shuffle buffer"
    if plan.unseeded is not None:
        why = "the buffer has no seed"
        promise = _without_seed(plan.unseeded, len(plan.from_consumed) or 1)
    elif plan.continued_by == "shardctl.tfds":
        why = "shardctl.tfds rebuilds the stages"
    elif plan.stop is not None:
        why = f"the rule of {plan.settings.reader.title}"
    elif plan.mode == "exact-order":
        held = _examples(len(plan.pending or ()))
        why = f"shardctl.tfds restores the shuffle buffer with its {held}"
    elif plan.mode == "exactly-once":
        why = "other hosts read in another order" if plan.hosts else "set by --mode"
        why = "a log has no order" if plan.from_seen else why
        promise = "every example that is left, in another order"
        if plan.hosts and plan.settings.drop_remainder:
            promise += ", except what each new host drops of its last batch"
    return f"mode: {plan.mode} ({why}): {promise}"


def _how(plan: ResumePlan, plan_file: str | None) -> Iterator[str]:
    """Yield what to read a plan with."""
    by_plan = has_builder(plan.instructions.dataset.file_format)
    written = ", with the file that --output plan.yaml writes" if by_plan and not plan_file else ""
    called = f"in Python: {resume_call(plan, plan_file or 'plan.yaml')}{written}"
    if plan.num_pending_instructions:
        runs = counted(plan.num_pending_instructions, "instruction")
        yield f"the first {runs} read the {_examples(len(plan.pending or ()))} of the buffer"
    if plan.continued_by == "shardctl.tfds":
        if any(WHOLE_STEPS in warning for warning in plan.warnings):
            yield f"no call of Python resumes here: {WHOLE_STEPS}"
            return
        if _needs_script(plan):
            yield f"in Python, with the script's own dataset: {_like(plan)}"
            return
        yield called
        if not by_plan:
            return
        yield f"or, with the script's own dataset: {_like(plan)}"
        return
    if plan.read_config is None:
        if plan.after_read:
            yield f"continue with: {', then '.join(map(str, plan.after_read))}"
        yield from (f"- {line}" for line in plan.advice)
        if plan.stop is not None:
            yield "in Python: --format python writes the code that reads what is left"
        return
    calls = calls_chained(plan.after_read)
    yield called
    if not by_plan:
        return
    if plan.mode == "exact-order" and plan.is_one_stream:
        return  # only the buffer itself decides where such a stream ends
    label = "or each once, in another order" if plan.mode == "exact-order" else "or read with"
    yield (
        f"{label}: tfds.ReadConfig(interleave_cycle_length={plan.cycle_length}, "
        f"interleave_block_length={plan.settings.block}, experimental_interleave_sort_fn=..) that "
        f"returns these instructions, shuffle_files=False{', then ' + calls if calls else ''}"
    )
    if plan.further_epochs:
        yield _further(plan)


def _without_seed(buffer: UnseededBuffer, num_hosts: int = 1) -> str:
    """Return what a buffer without a known seed loses and repeats, or the buffers of several hosts.

    >>> from shardctl.saved.unseeded_buffer import behind_buffer
    >>> print(_without_seed(behind_buffer(
    ...     buffer_size=9, emitted=50, num_elements=99, risk=None)))
    at most 8 examples lost, 0 repeated, whatever the seed was. The buffer had read 58, of which \
0 are read again
    """
    who = "The buffer" if num_hosts == 1 else f"The buffers of the {num_hosts} hosts"
    repeated = counts_between(buffer.least_repeated, buffer.most_repeated)
    text = f"at most {_examples(buffer.most_lost)} lost, {repeated} repeated, whatever the seed was"
    text += (
        f". {who} had read {buffer.num_read:,}, of which {buffer.num_read_again:,} are read again"
    )
    if buffer.risk is None:
        return text
    return f"{text}. On average {buffer.expected_lost:.2g} are lost, below the risk {buffer.risk:g}"


def _further(plan: ResumePlan) -> str:
    following, last = plan.further_epochs[0], plan.epoch + plan.num_further_epochs
    which = f"epoch {last}" if following.epoch == last else f"epochs {following.epoch} to {last}"
    which += ", files reshuffled" if following.file_seeds else ", the same files"
    if plan.hosts:
        return f"then: {which}, shared by the new hosts"
    mode = "" if plan.exact else f" --mode {plan.mode}"
    return f"then: {which}; resume --consumed {following.consumed}{mode} lists the first of them"


def _examples(count: int) -> str:
    return counted(count, "example")


# What was written to a file, and what is done with it next: lines for people.


def resume_call(plan: ResumePlan, plan_file: str) -> str:
    """Return the call of Python that resumes from a plan file.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.verbs.resume.answer import resume
    >>> train = Split.even(name="train", num_examples=9, num_shards=3)
    >>> resume_call(resume(Dataset(name="d", splits=(train,)), consumed=2), "plan.yaml")
    "shardctl.tfds.resume(builder, 'plan.yaml')"
    """
    host = ", host=i" if plan.hosts else ""
    if _needs_script(plan) or not has_builder(plan.instructions.dataset.file_format):
        return _like(plan)
    return f"shardctl.tfds.resume({_builder(plan.instructions.dataset)}, {plan_file!r}{host})"


def _like(plan: ResumePlan) -> str:
    return f"shardctl.tfds.resume_like(ds, consumed={plan.consumed})"


def _needs_script(plan: ResumePlan) -> bool:
    """Whether functions of the script decide what comes, as that of a filter does."""
    return any(isinstance(part, ByData) for part in parts_of(stages_of(plan.settings)))


def _builder(dataset: Dataset) -> str:
    """Return what stands for the builder; of files without metadata TFDS has none."""
    if not dataset.is_counted:
        return "builder"
    references = [folder.reference for folder in (dataset.folders or (dataset,))]
    named = references[0] if len(references) == 1 else None
    return f"shardctl.tfds.record_files({'..' if named is None else repr(named)})"


def plan_written(
    plan: ResumePlan,
    path: str,
    form: str,
    dataset: Sequence[str] = (),
    *,
    framework: str | None = None,
) -> Iterator[str]:
    """Yield what a file of a plan holds, what resumes from it, and the command that checks it.

    `dataset` are the options that named its dataset; without them it is found where it lay.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.verbs.resume.answer import resume
    >>> train = Split.even(name="train", num_examples=9, num_shards=3)
    >>> plan = resume(Dataset(name="d", splits=(train,)), consumed=2)
    >>> print(*plan_written(plan, "plan.yaml", "yaml"), sep="\\n")
    wrote plan.yaml: mode exact, left: 7 examples of epoch 0 in 3 file instructions
    next, in Python:
      shardctl.tfds.resume(builder, 'plan.yaml')
    this command checks it:
      shardctl resume --plan plan.yaml --prove
    """
    hosts = f" for {len(plan.hosts):,} hosts" if plan.hosts else ""
    yield f"wrote {path}: mode {plan.mode}, {_left(plan)}{hosts}"
    if form in ("yaml", "json"):
        # A proof of what a log left over needs the log.
        proof = [] if plan.from_seen else ["--prove"]
        words = ["shardctl", "resume", "--plan", path_word(path), *dataset, *proof]
        if plan.continued_by != "loader":
            yield from ("next, in Python:", f"  {resume_call(plan, path)}")
        elif plan.stop:
            yield "next: this command writes the code that resumes:"
            yield f"  {shell_line(*words[:-1], '--format', 'python')}"
        yield from ("this command checks it:", f"  {shell_line(*words)}")
    elif framework is not None:
        yield "next: edit prepare(), the model and the loss; rerun it after an interruption"
    elif form == "python":
        yield "next: paste it where the pipeline was made; it resumes where that one stopped"
