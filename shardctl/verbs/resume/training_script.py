"""A plan to resume as a whole training script, in each framework.

In each the position is in the framework's own checkpoints: `tf.train.Checkpoint`,
`BackupAndRestore` of Keras with `ResumeFit`, an item of Orbax. The same model with the same first
weights learns by the same rule in all of them, so that one can be held against the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from types import MappingProxyType

from shardctl.code import reader
from shardctl.code.source import call, comment, literal, module, settings_code
from shardctl.draw.step_rows import settings_words
from shardctl.errors import UsageError
from shardctl.order.plan_order import plan_order
from shardctl.order.sources import reads_spec
from shardctl.saved.resume_plan import UNSEEDED_MODES, ResumePlan
from shardctl.verbs.resume.code import reading_of, same_dataset
from shardctl.verbs.resume.proof import Proof


@dataclass(frozen=True, kw_only=True)
class Framework:
    """The parts of a script behind its `position`.

    Where they begin is `$step`, counted over all epochs, and in Keras `$epoch` of `$epochs`.

    imports: besides those of TensorFlow, TFDS and shardctl.tfds.
    model: a model and its loss for examples of `num_pixels` numbers and `num_classes` labels.
    train: what restores, trains and saves.
    """

    imports: tuple[str, ...]
    model: str
    train: str


def _part(name: str) -> str:
    return (Path(__file__).parent / "scripts" / f"{name}.py.txt").read_text("utf-8")


# For images with labels, of any size, also as plain tensors. Other examples are refused before
# anything is trained.
PREPARE = _part("prepare")

_KERAS_MODEL = _part("keras_model")
FRAMEWORKS: Mapping[str, Framework] = MappingProxyType(
    {
        "loop": Framework(imports=("import keras",), model=_KERAS_MODEL, train=_part("loop")),
        "keras": Framework(imports=("import keras",), model=_KERAS_MODEL, train=_part("keras")),
        "flax": Framework(
            imports=(
                "import optax",
                "import orbax.checkpoint as ocp",
                "from flax import nnx",
                "import shardctl.orbax",
            ),
            model=_part("flax_model"),
            train=_part("flax"),
        ),
    }
)


# A plan to resume as a whole training script.


def training_script(plan: ResumePlan, proof: Proof | None, *, framework: str) -> Iterator[str]:
    """Yield the script that goes on from a plan in a framework, one of `FRAMEWORKS`.

    A proof is no part of it. Of the plan it needs what was consumed, and no file instructions.

    Raises:
        UsageError: what the position of one process does not continue; the text says what does.
    """
    why, step = _why_not(plan, framework), None
    if why is None and (step := _first_step(plan)) is None:
        why = (
            "a training step takes a batch: give --batch B, or --stages whose elements are batches"
        )
    if why is not None:
        raise UsageError(f"--for {framework}: {why}")
    dataset, form = plan.instructions.dataset, FRAMEWORKS[framework]
    builder = list(reader.builder(dataset))
    epoch = plan.settings.pass_index  # of fit; no other form knows it
    train = Template(form.train).substitute(step=step, epoch=epoch, epochs=epoch + 1)
    yield from module(
        _head(plan),
        reader.imports([PREPARE, train, *builder], reader.BRIDGE, *form.imports),
        [*builder, *same_dataset(plan)],
        _position(plan, framework),
        [*_yours(plan, framework), *PREPARE.splitlines()],
        form.model.splitlines(),
        train.splitlines(),
    )


def _why_not(plan: ResumePlan, framework: str) -> str | None:
    """Return why the position of one process does not go on from a plan, and what does."""
    settings, of_mode = plan.settings, f"--mode {plan.mode}, which is not the exact order"
    several = len(plan.sources) > 1 or any(source.data is not None for source in plan.sources)
    for is_so, what in (
        (plan.continued_by == "loader", f"tf.data reads, not {settings.reader.title}"),
        (plan.from_seen, "a log has no order in which a position is a place"),
        (plan.hosts, "what is left is shared among other hosts, see Position.set_states"),
        (settings.host is not None, "nothing in it joins the gradients of several hosts"),
        (plan.mode in (*UNSEEDED_MODES, "exactly-once"), of_mode),
        (several, "several datasets are read"),
    ):
        if is_so:
            return (
                f"it is the script of one process that reads one dataset in exact order: {what}; "
                "leave --for out, or give these settings to shardctl.tfds.Position in yours"
            )
    if settings.loop == "keras-fit" and framework != "keras":
        return "a fit that stopped draws the orders of its epochs as fit does: --for keras"
    return _why_no_training(plan) or (_why_no_fit(plan) if framework == "keras" else None)


def _why_no_fit(plan: ResumePlan) -> str | None:
    if plan.settings.pass_index and plan.settings.loop != "keras-fit":
        return (
            "--pass counts the passes of a loop over one dataset, of which fit takes two an epoch; "
            "--loop keras-fit counts its epochs"
        )
    if plan.settings.batch is not None and plan.consumed % plan.settings.batch:
        return f"{plan.consumed:,} examples end within a batch, and fit counts batches"
    if not plan.has_end:
        return (
            "the pipeline has no end, so neither has an epoch of fit; give --stages a take(N), or "
            "fit in your own script steps_per_epoch (shardctl help keras)"
        )
    return None


def _why_no_training(plan: ResumePlan) -> str | None:
    if plan.instructions.dataset.is_counted:
        return (
            "these record files have no metadata, so nobody knows what is in an example; shardctl "
            "index --tfds FOLDER --features writes it"
        )
    if not reading_of(plan).num_examples:
        return str(reader.nothing_to_read(plan.spec))
    if not plan.remaining:
        return "nothing is left to train on, the order is at its end; --epochs N is a longer one"
    return None


def _head(plan: ResumePlan) -> Iterator[str]:
    yield from comment(f"{plan.spec} of {plan.dataset.title}: {settings_words(plan.pipeline)}")
    for text in plan.assumptions:
        yield from comment(f"assumed: {text}")
    left = f"; {plan.remaining_total:,} are left" if plan.has_end else ""
    yield from comment(
        f"The training goes on after {plan.consumed:,} examples{left}. Started again, it goes on "
        'from its last checkpoint, which has the position, in the folder "checkpoints".'
    )


def _position(plan: ResumePlan, framework: str) -> Iterator[str]:
    settings = plan.settings
    reader.file_order(settings)  # refuses a list that is too long
    if settings.global_seed is not None:
        yield f"tf.random.set_seed({literal(settings.global_seed)})"
    in_fit = framework == "keras"  # whose epochs are the passes
    if in_fit:
        settings = replace(settings, pass_index=0, loop="python")
    yield from settings_code(settings)
    yield "# Where the training begins as long as there is no checkpoint."
    spec = literal(plan.spec) if reads_spec(settings) else "None"
    arguments = ["builder", spec, "settings"]
    if not in_fit:
        arguments.append(f"consumed={plan.consumed}")
    yield from call("position = shardctl.tfds.Position", arguments)
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
    return int(order.steps_of([plan.consumed - 1])[0][0]) + 1


def _yours(plan: ResumePlan, framework: str) -> Iterator[str]:
    epochs = ", and how many epochs fit has" if framework == "keras" else ""
    learnt = ", which has learnt from what came before" if plan.consumed else ""
    yield from comment(
        f"Yours: prepare, which makes (x, y) of an example, and the model{learnt}, with its "
        f"optimizer and its loss{epochs}. These are for images with labels."
    )
