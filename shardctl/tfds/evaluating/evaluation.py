"""An evaluation that sees every example once, in one shape, and ends on every host at once."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace
from typing import Any, Literal

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.hosts.host import HostLike
from shardctl.core.phrase import Argument, listed, phrase
from shardctl.core.settings.of_tfds import refuse_loader
from shardctl.core.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.errors import UsageError
from shardctl.planning.eval.eval import evaluate
from shardctl.planning.file_formats import format_warnings, refuse_unreadable
from shardctl.planning.open_splits import refuse_open_splits
from shardctl.tfds.builder_layout import Builder, dataset_of
from shardctl.tfds.evaluating.examples import HostExamples
from shardctl.tfds.evaluating.own_host import own_host
from shardctl.tfds.evaluating.padded import padded_batches
from shardctl.tfds.training.pipeline import Transform

_OF_AN_EVALUATION = frozenset(
    ("cycle", "cpus", "block", "deterministic", "reverse", "file_order", "host", "host_by")
)


@checked
def evaluation(
    builder: Builder,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    batch: int,
    hosts: int | None = None,
    host: int | HostLike | None = None,
    devices: int = 1,
    device_axis: bool = False,
    padding: Literal["repeat", "zeros"] = "repeat",
    sample_weight: bool = False,
    as_supervised: bool = False,
    transform: Transform | None = None,
    decoders: Any = None,
    add_tfds_id: bool = False,
) -> Any:
    """Return the `tf.data.Dataset` of one host's evaluation: padded batches, each with its mask.

    The plan is that of `shardctl eval --pad`, with its numbers: over all hosts each
    example comes once with its mask true, every batch has one static shape, so that a step is
    compiled once, and every host makes as many steps as the one with the most, by batches of
    padding alone at the end. So no host waits in a collective for one that is done. Examples come
    in the order of `shardctl simulate` for the host, and no other files are opened than there, but
    by a host that has no example, for one to repeat. The length is known, `len(dataset)`. Examples
    are read anew in each iteration; `.cache()` behind it keeps what is small.

    An element is `(examples, mask)`, or where an example is a tuple that tuple with the mask behind
    it, as `(x, y, mask)` of `(x, y)`. The mask is bool, one a
    place of the batch. Padding repeats an example of the dataset, so that whatever is finite for
    examples is for padding: a NaN of zeros (a mean over none, a norm of nothing) would get past a
    mask that it is multiplied by.

    Args:
        builder: a TFDS builder, or what `record_files` returns.
        spec: what is evaluated on; None is `test`, `validation`, else `train`.
        settings: how hosts share the examples (`host_by`), and the order of the files; what
            shuffles, repeats or batches is refused.
        batch: examples in the batch of one device, as in `shardctl eval`.
        hosts, host: which host of how many this is: `host=2, hosts=8`, or `host="2/8"`. What is
            left out is asked of JAX, once it runs as several processes, and of tf.distribute; where
            neither says anything there is one host.
        devices: how many this host has; its batch is as many times `batch`.
        device_axis: whether batches are (devices, batch, ..), as `jax.pmap` takes them, in place of
            (devices * batch, ..).
        padding: "repeat", or "zeros", for which no host opens a file of another.
        sample_weight: whether elements are `(x, y, sample_weight)` for Keras, of examples `(x, y)`
            or `(x, y, weight)`; `shardctl help keras-evaluation` says which metrics heed it.
        as_supervised: as of `as_dataset`, examples as `(x, y)`.
        transform: a function of one example, as for `Dataset.map`, that makes all one shape.
        decoders, add_tfds_id: as of `shardctl.tfds.pipeline`.

    Raises:
        UsageError: a bad spec or number, settings of a training, components of no one shape, or
            hosts that contradict what runs here; the text names each and the way out.
        DatasetError: the files cannot be read by tf.data, or the dataset has no examples at all.
        UnpredictableOrderError: the order is open, and hosts that read each another one would not
            share the examples.
        MissingDependencyError: TensorFlow or TFDS is not installed.

        dataset = shardctl.tfds.evaluation(builder, "test", batch=64, as_supervised=True)
        correct = total = 0
        for x, y, mask in dataset.as_numpy_iterator():
            correct += ((predict(x) == y) & mask).sum()
            total += mask.sum()
    """
    settings = as_settings(settings)
    refuse_loader(settings, "shardctl.tfds.evaluation", "shardctl.evaluate counts what it makes")
    _check_settings(settings)
    dataset = dataset_of(builder)
    refuse_unreadable(dataset)
    if as_supervised:
        _check_supervised(builder, dataset, add_tfds_id=add_tfds_id)
    settings.check_predictable(ordered=dataset.ordered)
    reading = own_host(hosts, host, settings.host)
    settings = replace(settings, host=reading)
    plan = evaluate(
        dataset,
        spec,
        settings,
        batch=batch,
        hosts=reading.count,
        devices=devices,
        remainder="pad",
    )
    refuse_open_splits(plan.resolved)
    for warning in format_warnings(dataset, plan.resolved.ranges):
        warnings.warn(warning, stacklevel=3)  # past @checked
    own = HostExamples(
        builder=builder,
        plan=plan,
        host=reading,
        transform=transform,
        decoders=decoders,
        add_tfds_id=add_tfds_id,
        as_supervised=as_supervised,
    )
    return padded_batches(
        own, repeats=padding == "repeat", device_axis=device_axis, sample_weight=sample_weight
    )


def _check_supervised(builder: Any, dataset: Dataset, *, add_tfds_id: bool) -> None:
    if not getattr(builder.info, "supervised_keys", None):
        raise UsageError(
            f"as_supervised=True: {dataset.title} says nothing of what is x and what is y "
            "(supervised_keys); give transform a function that returns (x, y)"
        )
    if add_tfds_id:
        raise UsageError(
            "add_tfds_id=True: TFDS leaves the id out of supervised examples; give transform a "
            "function that returns (x, y) and the id"
        )


def _check_settings(settings: ReadSettings) -> None:
    """Refuse what trains and does not evaluate: shuffles, epochs, batches, stages."""
    others = [
        Argument(field.name, getattr(settings, field.name))
        for field in fields(ReadSettings)
        if field.name not in _OF_AN_EVALUATION and getattr(settings, field.name) != field.default
    ]
    if others:
        several = len(others) > 1
        raise UsageError(
            phrase(
                "an evaluation reads each example once, in the order of the files and in batches "
                "of {batch}: {} {} no place in its settings; leave {} out",
                listed(others),
                "have" if several else "has",
                "them" if several else "it",
            )
        )
