"""What was written to a file, and what is done with it next: two lines for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.snapshot.snapshot import Snapshot
from shardctl.core.text import counted


def resume_call(plan: ResumePlan, plan_file: str) -> str:
    """Return the call of Python that goes on from a plan file.

    >>> from shardctl.core.dataset.dataset import Dataset, Split
    >>> from shardctl.planning.resume.resume import resume
    >>> train = Split.even(name="train", num_examples=9, num_shards=3)
    >>> resume_call(resume(Dataset(name="d", splits=(train,)), consumed=2), "plan.yaml")
    "shardctl.tfds.resume(builder, 'plan.yaml')"
    """
    host = ", host=i" if plan.hosts else ""
    return f"shardctl.tfds.resume({_builder(plan.instructions.dataset)}, {plan_file!r}{host})"


def _builder(dataset: Dataset) -> str:
    """Return what stands for the builder; of files without metadata TFDS has none."""
    if not dataset.is_counted:
        return "builder"
    references = [folder.reference for folder in (dataset.folders or (dataset,))]
    named = references[0] if len(references) == 1 else None
    return f"shardctl.tfds.record_files({'..' if named is None else repr(named)})"


def plan_written(
    plan: ResumePlan, path: str, form: str, dataset: Sequence[str] = ()
) -> Iterator[str]:
    """Yield what a file of a plan holds, and what goes on with it.

    `dataset` are the options that named its dataset; without them it is found where it lay.

    >>> from shardctl.core.dataset.dataset import Dataset, Split
    >>> from shardctl.planning.resume.resume import resume
    >>> train = Split.even(name="train", num_examples=9, num_shards=3)
    >>> plan = resume(Dataset(name="d", splits=(train,)), consumed=2)
    >>> print(*plan_written(plan, "plan.yaml", "yaml"), sep="\\n")
    wrote plan.yaml: 3 file instructions, 7 examples left, mode exact
    next: shardctl.tfds.resume(builder, 'plan.yaml') in Python; shardctl resume --plan plan.yaml \
--prove checks it
    """
    what = f"{counted(plan.num_instructions, 'file instruction')}, "
    if plan.continued_by == "shardctl.tfds":
        what = "the place in the stages, "
    elif not plan.lists_rest:
        what = "the calls that go on, "
    what += f"{counted(plan.remaining, 'example')} left" if plan.has_end else "no end"
    if plan.num_further_epochs:
        what += f" and {counted(plan.num_further_epochs, 'epoch')} after that"
    if plan.hosts:
        what += f", for {len(plan.hosts):,} hosts"
    if form == "python":
        what = f"code for {what}"
    yield f"wrote {path}: {what}, mode {plan.mode}"
    if form in ("yaml", "json"):
        words = ["--plan", path, *dataset]
        # A proof of what a log left over needs the log.
        words += [] if plan.from_seen else ["--prove"]
        check = f"shardctl resume {shlex.join(words)}"
        if plan.continued_by == "loader":
            code = ", and --format python writes the code that goes on" if plan.stop else ""
            yield f"next: {check} checks it{code}"
        else:
            yield f"next: {resume_call(plan, path)} in Python; {check} checks it"
    elif form == "python" and plan.continued_by == "loader":
        yield "next: paste it where the loader was made; it reads what is left"
    elif form == "python":
        yield "next: paste it where the pipeline was made; its ds goes on where that one stopped"


def script_written(plan: ResumePlan, path: str, framework: str) -> Iterator[str]:
    """Yield what a training script does, and what is left to do with it."""
    yield f"wrote {path}: a training script ({framework}), from example {plan.consumed:,} on"
    yield "next: make prepare, the model and its loss yours; run it again after any stop"


def snapshot_written(snapshot: Snapshot, path: str, dataset: Sequence[str] = ()) -> Iterator[str]:
    """Yield what a snapshot fixes, and what compares with it.

    `dataset` are the options without which its dataset is not found again.
    """
    yield f"wrote {path}: the order of {snapshot.num_examples:,} examples of {snapshot.spec}"
    compare = shlex.join(["shardctl", "diff", path, *dataset])
    yield f"next: commit it; {compare} says whether the order is still that"
