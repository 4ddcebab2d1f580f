"""A plan to resume as code: made, or read from its file, in the program that reads.

`shardctl.tfds.resume` reads it there; another loader is continued by calls of its library.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import Template

from shardctl.code import python_text as source
from shardctl.code import reader
from shardctl.code.pipeline import order_module
from shardctl.errors import UsageError
from shardctl.loaders.loader import library_of
from shardctl.order.plan_order import plan_order
from shardctl.order.sources import reads_spec, resolved_reading
from shardctl.saved.resume_plan import UNSEEDED_MODES, ResumePlan
from shardctl.spec.subsplit import Resolved
from shardctl.verbs.resume.answer import order_of_plan
from shardctl.verbs.resume.proof import Proof
from shardctl.verbs.resume.rest_of_epoch import within_a_batch
from shardctl.verbs.resume.view import summary

MAX_PLACES = 5000  # counts of hosts that are written as code


def resume_python(
    plan: ResumePlan, proof: Proof | None, *, plan_file: str | None = None
) -> Iterator[str]:
    """Yield code that makes `ds`, which resumes where the pipeline of the plan stopped.

    `plan_file` is where the plan was read from; a proof is no part of the code.

    Raises:
        UsageError: more than code is to hold, of a plan that is in no file; a spec without
            examples.
    """
    if plan.continued_by == "loader":
        yield from _of_loader(plan)
        return
    dataset = plan.given or plan.instructions.dataset
    if len(plan.sources) > 1 or any(one.data is not None for one in plan.sources):
        yield from _of_readers(plan)
        return
    if plan.hosts and plan.hosts[0].instructions.dataset != dataset:
        raise UsageError(
            "code that reads the rest of several datasets is not written; --format json lists it"
        )
    # TFDS refuses to read nothing, so the code would fail.
    if not reading_of(plan).num_examples:
        raise reader.nothing_to_read(plan.spec)
    made, builder = list(_with_shardctl(plan, plan_file)), list(reader.builder(dataset))
    hosts = [
        "# Which of the new hosts this is, from 0.",
        f"host, num_hosts = 0, {len(plan.hosts)}",
    ] * bool(plan.hosts)
    yield from source.module(
        summary_comment(plan),
        reader.imports([*made, *builder], reader.BRIDGE),
        [*builder, *same_dataset(plan), *hosts],
        made,
    )


def _of_loader(plan: ResumePlan) -> Iterator[str]:
    """Yield code by which another loader reads what is left of all epochs.

    Raises:
        UsageError: a plan from a log, or for other hosts, which is of no order.
    """
    if plan.from_seen or plan.hosts:
        what = "a log left over" if plan.from_seen else "is shared among other hosts"
        raise UsageError(
            f"code that reads what {what} is not written for other loaders than TFDS's; "
            "--format json lists the examples, by their files"
        )
    assert plan.stop is not None
    order = order_of_plan(plan)
    stopped = source.comment(f"stopped after {plan.consumed:,} examples, in epoch {plan.epoch}")
    code = library_of(order.loader).code_of_rest(plan.spec, order, plan.stop)
    yield from source.module((*source.order_comment(plan.spec, order), *stopped), *code)


def summary_comment(plan: ResumePlan) -> list[str]:
    """Return comments that say where a plan resumes."""
    return [line for text in summary(plan) for line in source.comment(text)]


def _of_readers(plan: ResumePlan) -> Iterator[str]:
    """Yield the whole pipeline of several readers, and what resumes it.

    Raises:
        UsageError: a part that there is no code for.
    """
    settings, dataset = plan.settings, plan.given or plan.instructions.dataset
    spec = plan.spec if reads_spec(settings) else None
    order = plan_order(dataset, spec, settings).order
    within = within_a_batch(order, plan.consumed, "shardctl.tfds")
    if within:
        raise UsageError(within[0])
    where = {"consumed": source.literal(plan.consumed)}
    if settings.pass_index:
        where["pass_index"] = source.literal(settings.pass_index)
    if settings.loop != "python":
        where["loop"] = source.literal(settings.loop)
    rest = list(source.call("ds = shardctl.tfds.resume_like", ["ds", *source.keywords(where)]))
    notes = summary_comment(plan)
    try:
        code = list(order_module(order, plan.spec, notes, rest, imported=reader.BRIDGE))
    except UsageError as why:
        raise UsageError(f"{why}; with the dataset of the script: {' '.join(rest)}") from why
    yield from code


def reading_of(plan: ResumePlan) -> Resolved:
    """Return what the readers of a plan read, which stages may say."""
    return resolved_reading(plan.given or plan.instructions.dataset, plan.spec, plan.settings)


def same_dataset(plan: ResumePlan) -> Iterator[str]:
    """Yield a check that the dataset is as large as the plan's, in the splits that are read."""
    for split in dict.fromkeys(piece.split for piece in reading_of(plan).ranges):
        name, count = source.literal(split.name), source.literal(split.num_examples)
        yield f"assert builder.info.splits[{name}].num_examples == {count}"


def _with_shardctl(plan: ResumePlan, plan_file: str | None) -> Iterator[str]:
    """Yield what reads a plan through `shardctl.tfds`: from its file, else made where it reads."""
    host = {}
    if plan.hosts:
        host = {"host": "host"}
    elif plan.settings.host is not None:
        host = {"host": source.source_of(plan.settings.host)}
    if plan_file is not None:
        arguments = ["builder", source.literal(plan_file), *source.keywords(host)]
        yield from source.call("ds = shardctl.tfds.resume", arguments)
        return
    settings, counts = plan.settings, plan.from_consumed
    # What such a plan is made from would have to stand in the code.
    if plan.from_seen or len(counts) > MAX_PLACES:
        raise UsageError(
            "code of this plan is not written: write it with --output plan.yaml, then code that "
            "reads it with resume --plan plan.yaml --format python"
        )
    reader.refuse_long_order(settings)
    yield from source.settings_code(settings)
    spec = source.literal(plan.spec) if reads_spec(settings) else "None"
    where = ["shardctl.tfds.dataset_of(builder)", spec, "settings"]
    function = "resume_on_hosts" if counts else "resume"
    yield from source.call(f"plan = shardctl.{function}", [*where, *source.keywords(_how(plan))])
    yield from source.call("ds = shardctl.tfds.resume", ["builder", "plan", *source.keywords(host)])


def _how(plan: ResumePlan) -> dict[str, str]:
    """Return what `shardctl.resume`, or `resume_on_hosts`, is asked besides what is read."""
    how, counts = {}, plan.from_consumed
    if counts:
        alike = len(set(counts)) == 1
        how = {"hosts": source.literal(len(counts)), "to_hosts": source.literal(len(plan.hosts))}
        how["consumed"] = source.literal(counts[0]) if alike else f"[{', '.join(map(str, counts))}]"
    else:
        how["consumed"] = source.literal(plan.consumed)
    # The modes that shardctl chooses by itself there need not be said.
    if plan.mode not in ("exact", "exactly-once" if counts else "exact-order"):
        how["mode"] = source.literal(plan.mode)
    if plan.unseeded is not None and plan.unseeded.risk is not None:
        how["risk"] = repr(plan.unseeded.risk)
    return how


# A plan to resume as a whole training script, in each framework.
#
# In each the position is in the framework's own checkpoints: `tf.train.Checkpoint`,
# `BackupAndRestore` of Keras with `ResumeFit`, an item of Orbax. The same model with the same
# first weights learns by the same rule in all of them, so that one can be held against the other.


# Of each framework what it imports besides TensorFlow, TFDS and shardctl.tfds. The parts of its
# script lie in `scripts`: a model and its loss for `num_pixels` numbers and `num_classes` labels;
# what restores, trains and saves, from `$step` on, counted over all epochs, in Keras from `$epoch`
# of `$epochs`. `prepare` is for images with labels; others are refused before training.
FRAMEWORKS: dict[str, tuple[str, ...]] = {
    "loop": ("import keras",),
    "keras": ("import keras",),
    "flax": (
        "import optax",
        "import orbax.checkpoint as ocp",
        "from flax import nnx",
        "import shardctl.orbax",
    ),
}


def script_part(name: str) -> str:
    """Return a part of a training script by the name of its file."""
    return (Path(__file__).parent / "scripts" / f"{name}.py.txt").read_text("utf-8")


def training_script(plan: ResumePlan, proof: Proof | None, *, framework: str) -> Iterator[str]:
    """Yield the script that resumes from a plan in a framework, one of `FRAMEWORKS`.

    A proof is no part of it. Of the plan it needs what was consumed, and no file instructions.

    Raises:
        UsageError: what the position of one process does not continue; the text says what does.
    """
    step, why = None, _why_not(plan, in_fit=framework == "keras")
    if why is None and (step := _first_step(plan)) is None:
        why = "a training step takes a batch, of --batch B or of the --stages"
    if why is not None:
        raise UsageError(
            f"--for {framework} writes a script for one process that reads one dataset in exact "
            f"order: {why}; use shardctl.tfds.Position in your own script"
        )
    builder = list(reader.builder(plan.instructions.dataset))
    model = "flax_model" if framework == "flax" else "keras_model"
    prepare = script_part("prepare").splitlines()
    epoch = plan.settings.pass_index  # of fit; no other form knows it
    of_framework = Template(script_part(framework))
    train = of_framework.substitute(step=step, epoch=epoch, epochs=epoch + 1).splitlines()
    yield from source.module(
        [*summary_comment(plan), *source.comment(_RERUN)],
        reader.imports([*prepare, *train, *builder], reader.BRIDGE, *FRAMEWORKS[framework]),
        [*builder, *same_dataset(plan)],
        _position(plan, framework),
        prepare,
        script_part(model).splitlines(),
        train,
    )


def _why_not(plan: ResumePlan, *, in_fit: bool) -> str | None:
    """Return why the position of one process does not resume from a plan, and what does."""
    settings, of_fit = plan.settings, plan.settings.loop == "keras-fit"
    several = len(plan.sources) > 1 or any(one.data is not None for one in plan.sources)
    within = settings.batch is not None and plan.consumed % settings.batch
    reasons = (
        (plan.continued_by == "loader", f"tf.data reads, not {settings.reader.title}"),
        (plan.from_seen, "a log has no order"),
        (plan.hosts, "what is left is shared among other hosts, see Position.set_states"),
        (settings.host is not None, "nothing in it joins the gradients of several hosts"),
        (plan.mode in (*UNSEEDED_MODES, "exactly-once"), f"--mode {plan.mode} is not that order"),
        (several, "several datasets are read"),
        (plan.instructions.dataset.is_counted, "record files without metadata have no features"),
        (plan.has_end and not plan.remaining, "nothing is left to train on"),
        (of_fit and not in_fit, "an interrupted fit resumes with --for keras"),
        (in_fit and settings.pass_index and not of_fit, "--loop keras-fit counts its passes"),
        (in_fit and within, f"{plan.consumed:,} examples end within a batch, which fit counts"),
        (in_fit and not plan.has_end, "an epoch of fit has an end, as by take(N) in --stages"),
    )
    # The first reason is said; earlier ones are the more basic.
    return next((why for is_so, why in reasons if is_so), None)


_RERUN = 'Run again, it resumes from its last checkpoint and position in the folder "checkpoints".'


def _position(plan: ResumePlan, framework: str) -> Iterator[str]:
    settings = plan.settings
    reader.refuse_long_order(settings)
    if settings.global_seed is not None:
        yield f"tf.random.set_seed({source.literal(settings.global_seed)})"
    in_fit = framework == "keras"  # whose epochs are the passes
    if in_fit:
        # The passes are counted by `begin_epoch_of_fit` below instead.
        settings = replace(settings, pass_index=0, loop="python")
    yield from source.settings_code(settings)
    yield "# Where the training begins as long as there is no checkpoint."
    spec = source.literal(plan.spec) if reads_spec(settings) else "None"
    arguments = ["builder", spec, "settings"]
    if not in_fit:
        arguments.append(f"consumed={plan.consumed}")
    yield from source.call("position = shardctl.tfds.Position", arguments)
    if in_fit:
        yield f"position.begin_epoch_of_fit({plan.settings.pass_index})"
        yield f"position.advance({plan.consumed})"


def _first_step(plan: ResumePlan) -> int | None:
    """Return how many batches have begun before the place of a plan, None without batches."""
    order = plan_order(plan.instructions.dataset, plan.spec, plan.settings).order
    if order.shape is None or len(order.shape) != 1:
        return None
    if not plan.consumed:
        return 0
    # The step of the last example that was read is begun, and perhaps not complete.
    return int(order.steps_of([plan.consumed - 1])[0][0]) + 1
