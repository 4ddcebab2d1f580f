"""`shardctl resume`: the file instructions from which a pipeline resumes where it stopped."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.base.text import public_url
from shardctl.cli import output
from shardctl.cli.options import shared
from shardctl.cli.options.dataset import (
    DatasetOptions,
    dataset_and_refs,
    dataset_options,
    plan_of_file,
    project_here,
    refs_to_keep,
    refuse_allow_version,
    refuse_no_spec,
)
from shardctl.cli.options.order import OrderOptions, steps_of_epoch
from shardctl.errors import UnpredictableOrderError, UsageError

if TYPE_CHECKING:
    from shardctl.base.arrays import Int64s
    from shardctl.dataset.dataset import Dataset
    from shardctl.saved.resume_plan import ResumePlan
    from shardctl.settings.read_settings import ReadSettings
    from shardctl.spec.subsplit import Resolved

    Made = tuple[Dataset, ResumePlan, Int64s | None]


# The options of `resume` alone: how far a pipeline got, and which hosts continue.


def _counts(text: Any) -> tuple[int, ...]:
    return tuple(shared.whole_number(0)(part.strip()) for part in str(text).split(","))


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """Where a pipeline stopped and how it continues; None where not given.

    Options:
      --consumed N[,N..]: Examples yielded, from the start of the whole order; with --hosts one
        count for all or one a host.
      --steps, --step S: Batches of --batch yielded; the next one is step S.
      --epoch E: The epoch, from 0, in which --step S counts; E whole epochs and S steps of epoch E
        are done.
      --seen FILE: A log of the tfds_ids seen, a line each, or gzip; - is stdin.
      --mode exact-order|exactly-once|at-most-once|at-least-once: What may change with --buffer.
        The same order through shardctl.tfds, or each example once in another order. Without its
        seed: skip what it held, or read its last contents again [default: exact-order;
        exactly-once with --seen or --to-hosts].
      --hosts N: Number of hosts that stopped.
      --to-hosts M: Number of hosts that resume; what is left is split evenly among them.
      --for loop|keras|flax: Write a training script for TensorFlow, Keras or Flax with Orbax;
        its checkpoints hold the position. It implies --format python.

    More options:
      --risk R: With --mode at-least-once: fewer examples are lost on average [default: 1e-06].
    """

    consumed: Annotated[Any, shared.option(parse=_counts)] = None
    steps: Annotated[Any, shared.number("--steps", "--step", minimum=0)] = None
    epoch: Annotated[Any, shared.number(minimum=0)] = None
    seen: shared.Text = None
    mode: Annotated[Any, shared.option()] = None
    risk: Annotated[
        Any,
        shared.option(
            parse=shared.real_number(
                lambda risk: 0 < risk < float("inf"),
                "a number above 0 and at most the size of the buffer is needed",
            )
        ),
    ] = None
    hosts: shared.Number = None
    to_hosts: shared.Number = None
    framework: Annotated[Any, shared.option("--for")] = None

    def given(self) -> dict[str, Any]:
        """Return what is given, by the names of the options."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def check(self, refuse_no_spec: Callable[[], None] = lambda: None) -> None:
        """Refuse what does not say how far the pipeline got, or what has no meaning there.

        Raises:
            UsageError: no way, or several, of saying how far; or a mode where a log says it.
        """
        if self.epoch is not None and self.steps is None:
            raise UsageError("--epoch E needs --step S, the steps of epoch E that are done")
        if sum(value is not None for value in (self.consumed, self.steps, self.seen)) != 1:
            refuse_no_spec()
            raise UsageError(
                "say how far the pipeline got, in one way: --consumed N, --epoch E --step S with "
                "--batch B, or --seen FILE"
            )
        if self.mode == "exact-order" and self.hosts is not None:
            raise UsageError("--mode exact-order: other hosts have another order")
        for name in ("mode", "risk", "hosts") if self.seen is not None else ():
            # The one mode that a log can promise may be named.
            if getattr(self, name) not in (None, "exactly-once"):
                raise UsageError(f"--{name} with --seen: a log says what was seen, in any order")


FORMATS = output.formats_of("resume", python=output.as_code("verbs.resume.code:resume_python"))
# What --for asks for in place of them.
SCRIPTS = output.Formats(renderers={"python": output.as_code("verbs.resume.code:training_script")})


def resume(
    source: DatasetOptions,
    reading: OrderOptions,
    out: output.OutputOptions,
    stopped: ResumeOptions,
    spec: shared.SpecArgument = None,
    plan: shared.Text = None,
    allow_version: shared.Flag = False,
    prove: shared.Flag = False,
    every_row: output.AllOption = False,
) -> None:
    """Print the file instructions from which a pipeline resumes where it stopped.

    The order continues exactly; through a shuffle buffer this needs shardctl.tfds. The answer says
    which --mode it took. FILE.yaml or FILE.json after --output is the plan file that shardctl.tfds
    reads, FILE.py code to paste (--format python).

    Options:
      --plan FILE: Check a plan file against the dataset; - is stdin.
      --prove: Read the plan to its end and count what is lost, repeated and moved; exit with 1 if
        it breaks its promise.

    Examples:
      # Stopped after 5,000 examples: a plan file, and the proof that nothing is lost
      shardctl resume --consumed 5000 -d mnist --prove -o plan.yaml
      # Stopped in epoch 3 at step 123: the code that continues there
      shardctl resume --epoch 3 --step 123 --batch 256 -d mnist -f python
      # Stopped at step 123: a Keras script, which resumes from its own checkpoints too
      shardctl resume --steps 123 --batch 256 -d mnist --for keras -o train.py
      # 8 hosts stopped, 6 resume
      shardctl resume --consumed 5000 --hosts 8 --to-hosts 6 -d imagenet2012
    """
    if stopped.framework is not None and out.format == "table":  # --for implies the format
        out = replace(out, format="python")
    if plan is not None:
        plan = public_url(plan)
        # A plan holds all that options say of where it stopped, but for the log that it is of.
        given = {**reading.given(), **stopped.given(), "SPEC": spec}
        seen, _ = given.pop("seen", None), given.pop("framework", None)
        dataset, made = plan_of_file(
            plan, source, given, allow_version=allow_version, output=out.output
        )
        log = None if seen is None else _log(dataset, made.spec, made.settings, seen)[1]
    else:
        refuse_allow_version(given=allow_version)
        dataset, made, log = _from_options(source, reading, stopped, spec, output=out.output)
    output.warn(made.warnings)
    proof = None
    if prove:
        from shardctl.verbs.resume.proof import prove as read_and_compare

        proof = read_and_compare(dataset, made, seen=log)
    if out.output is not None and out.format in ("json", "yaml"):
        from shardctl.files.parse import MAX_VALUES

        if (count := made.num_instructions) > MAX_VALUES // 12:  # keys of YAML are values too
            raise UsageError(
                f"a plan file of {count:,} file instructions would not be read back; plan with "
                "shardctl.resume in the program that reads"
            )
    if stopped.framework is not None:
        SCRIPTS.write(out, made, proof, framework=stopped.framework)
    else:
        FORMATS.write(out, made, proof, every_row=every_row, plan_file=plan)
    if out.output not in (None, "-"):
        from shardctl.verbs.resume.view import plan_written

        # The options that named the dataset are repeated in the command that checks the plan.
        named, how = dataset_options(source), {"framework": stopped.framework}
        for line in plan_written(made, out.output, out.format or "", named, **how):
            output.say(line)
    # The table has the proof; in place of other output it goes to stderr, for people.
    if proof is not None and (out.format != "table" or out.output is not None):
        from shardctl.draw.tables import Screen
        from shardctl.verbs.resume.view import proof_lines

        for line in proof_lines(proof, Screen(abridged=not every_row)):
            output.say(line)
    if proof is not None and not proof.holds:
        raise typer.Exit(1)


def _from_options(
    source: DatasetOptions,
    reading: OrderOptions,
    stopped: ResumeOptions,
    spec: str | None,
    *,
    output: str | None,
) -> "Made":
    project = project_here()
    settings = reading.settings(project)
    stopped.check(lambda: refuse_no_spec(spec, source))
    chosen = dataset_and_refs(source, project)
    dataset, refs = chosen.dataset, refs_to_keep(chosen, output, on_this_machine=True)
    if stopped.seen is None:
        return dataset, replace(_continued(dataset, spec, settings, stopped), refs=refs), None
    from shardctl.verbs.resume.answer import resume_unseen_of

    resolved, log = _log(dataset, spec, settings, stopped.seen)
    plan = resume_unseen_of(resolved, settings, seen=log, to_hosts=stopped.to_hosts)
    return dataset, replace(plan, refs=refs), log


def _continued(
    dataset: "Dataset", spec: str | None, settings: "ReadSettings", stopped: ResumeOptions
) -> "ResumePlan":
    """Return the plan from a number of examples or steps, on the same hosts or on others."""
    from shardctl.verbs.resume.answer import resume as plan_resume
    from shardctl.verbs.resume.hosts import resume_on_hosts

    consumed = stopped.consumed
    if (stopped.hosts is None) != (stopped.to_hosts is None):
        raise UsageError("--hosts N stopped and --to-hosts M continue: give both, or neither")
    how: dict[str, Any] = {"steps": stopped.steps, "risk": stopped.risk}
    how |= {} if stopped.mode is None else {"mode": stopped.mode}
    if stopped.epoch is not None:
        at = stopped.epoch, [stopped.steps]
        # Steps of an epoch become steps of its pass.
        settings, (how["steps"],) = steps_of_epoch(*at, settings, dataset, spec, at_end=True)
    if stopped.hosts is not None:
        how |= {"hosts": stopped.hosts, "to_hosts": stopped.to_hosts}
        return resume_on_hosts(dataset, spec, settings, consumed=consumed, **how)
    if consumed is not None and len(consumed) > 1:
        raise UsageError(
            f"--consumed names {len(consumed)} counts: one a host is for --hosts N --to-hosts M"
        )
    only = None if consumed is None else consumed[0]
    try:
        return plan_resume(dataset, spec, settings, consumed=only, **how)
    except UnpredictableOrderError as error:
        if settings.buffer_is_open:  # for which there is a --mode
            raise
        text = f"{error}; or plan from a log with --seen FILE"
        raise UnpredictableOrderError(text) from error


def _log(
    dataset: "Dataset", spec: str | None, settings: "ReadSettings", path: str
) -> "tuple[Resolved, Int64s]":
    """Return what is read, and the codes that a log has of it."""
    from shardctl.metadata.example_log import read_seen
    from shardctl.order.sources import resolved_reading
    from shardctl.verbs.resume.answer import codes_of

    resolved = resolved_reading(dataset, spec, settings)
    log = read_seen(path, codes_of(resolved))
    output.warn(log.warnings)
    return resolved, log.codes
