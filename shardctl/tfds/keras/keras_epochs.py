"""Keras `fit`, stopped and resumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.hosts.host import HostLike
from shardctl.core.settings.of_tfds import refuse_loader
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.short_form import short_form
from shardctl.errors import UsageError
from shardctl.planning.order import plan_order
from shardctl.planning.resume.resume import resume as plan_resume
from shardctl.tfds.builder_layout import Builder, dataset_of
from shardctl.tfds.graphs.dataset_graph import NotRebuildable
from shardctl.tfds.graphs.own_elements import OwnElements
from shardctl.tfds.graphs.predicted import elements_of
from shardctl.tfds.training.fitted_plan import fitted
from shardctl.tfds.training.global_seed import check_global_seed
from shardctl.tfds.training.pipeline import Transform
from shardctl.tfds.training.process_host import check_host
from shardctl.tfds.training.resume import dataset_of_plan
from shardctl.tfds.training.staged_rest import real_dataset


@checked
def keras_epochs(
    builder: Builder,
    spec: str | None = None,
    settings: ReadSettings | None = None,
    *,
    epochs: int,
    initial_epoch: int = 0,
    steps: int = 0,
    host: int | HostLike | None = None,
    transform: Transform | None = None,
    decoders: Any = None,
) -> Iterator[tuple[int, Any]]:
    """Return (epoch, `tf.data.Dataset`) for each epoch that `fit(epochs=epochs)` has left.

    `fit(initial_epoch=k)` does not resume: it begins a new pass over the dataset, and so trains on
    the order of epoch 0 again. And of a dataset whose length it knows it takes two iterators an
    epoch, so that an uninterrupted run trains on every other order. Each dataset here is one epoch
    of that run, in its order, however often Keras begins it:

        for epoch, dataset in keras_epochs(builder, "train", settings, epochs=9, initial_epoch=4):
            model.fit(dataset, initial_epoch=epoch, epochs=epoch + 1)

    The uninterrupted run is `model.fit(pipeline(builder, spec, settings), epochs=epochs)`, without
    steps_per_epoch. The first dataset leaves out `steps` batches of its epoch; after the last step
    it is the next epoch's. Settings with
    `epochs` above 1 repeat the dataset within each epoch of `fit`. `transform` should make the
    pairs (x, y) that Keras trains on; TFDS's `as_supervised` is such a one. `host` is that of
    `resume`.

    Source: keras/src/trainers/epoch_iterator.py, of Keras 3.

    Raises:
        UnpredictableOrderError: TensorFlow leaves the order open; so it does with `settings.epochs`
            above 1 and no partial last batch, where what Keras reads ahead depends on timing.
        UsageError: no such epoch or step, no batch size, a pass index in the settings, which the
            epochs of `fit` count, settings for another host, or a global seed in force as for
            `resume`. One that is set after this call, for a model's weights, changes nothing.
    """
    settings = short_form(ReadSettings() if settings is None else settings)
    refuse_loader(settings, "keras_epochs", "fit takes a loader as it is")
    if settings.stages is not None:
        return _of_stages(
            builder,
            spec,
            settings,
            range(initial_epoch, epochs),
            steps,
            host,
            transform=transform,
            decoders=decoders,
        )
    if settings.batch is None:
        raise UsageError("fit trains on batches: give ReadSettings(batch=N)")
    if settings.pass_index:
        raise UsageError(
            f"pass_index={settings.pass_index}: every epoch of fit is a pass, and initial_epoch "
            "says with which to begin"
        )
    if not 0 <= initial_epoch <= epochs:
        raise UsageError(f"initial_epoch={initial_epoch}: fit has epochs 0 to {epochs}")
    dataset = dataset_of(builder)
    fit_settings = replace(settings, loop="keras-fit")
    order = plan_order(dataset, spec, fit_settings).order
    num_steps = -(-order.num_examples // settings.batch)
    if not 0 <= steps <= num_steps or (steps and initial_epoch == epochs):
        raise UsageError(
            f"steps={steps} of epoch {initial_epoch}: fit has {epochs} epochs of {num_steps} steps"
        )
    if num_steps and steps == num_steps:  # the end of an epoch is the start of the next
        initial_epoch, steps = initial_epoch + 1, 0

    if settings.host is not None:
        check_host(settings.host, host)
    check_global_seed(settings, lambda: len(order.reads))

    def each() -> Iterator[tuple[int, Any]]:
        for epoch in range(initial_epoch, epochs):
            plan = plan_resume(
                dataset,
                spec,
                replace(fit_settings, pass_index=epoch),
                steps=steps if epoch == initial_epoch else 0,
                mode="exact-order",
            )
            here = fitted(builder, plan, host)
            yield epoch, dataset_of_plan(builder, here, transform, decoders)

    return each()


def _of_stages(
    builder: Any,
    spec: str | None,
    settings: ReadSettings,
    epochs: range,
    steps: int,
    host: int | HostLike | None,
    **how: Any,
) -> Iterator[tuple[int, Any]]:
    """Return what `keras_epochs` does of settings with stages; the elements are what they make."""
    if settings.pass_index:
        raise UsageError(f"pass_index={settings.pass_index}: every epoch of fit is a pass")
    if epochs.start < 0 or epochs.start > epochs.stop:
        raise UsageError(f"initial_epoch={epochs.start}: fit has epochs 0 to {epochs.stop}")
    settings = replace(settings, loop="keras-fit")
    dataset = dataset_of(builder)
    order = plan_order(dataset, spec, replace(settings, pass_index=max(epochs.stop - 1, 0))).order
    num_steps = elements_of(order).num_elements
    if num_steps is None:
        raise UsageError("stages that never end have no epochs of fit; end them with take(N)")
    if not 0 <= steps <= num_steps or (steps and not epochs):
        raise UsageError(f"steps={steps}: an epoch of fit has {num_steps} steps")
    if settings.host is not None:
        check_host(settings.host, host)
    check_global_seed(settings, lambda: len(order.reads))
    if num_steps and steps == num_steps:
        epochs, steps = epochs[1:], 0

    def each() -> Iterator[tuple[int, Any]]:
        made = real_dataset(builder, spec, settings, **how)
        for epoch in epochs:
            own = plan_order(dataset, spec, replace(settings, pass_index=epoch)).order
            try:
                rest = OwnElements.of_order(made, own).made(
                    start=steps if epoch == epochs.start else 0
                )
            except NotRebuildable as why:
                raise UsageError(f"{why}: the epochs of these stages are not parted") from why
            yield epoch, rest

    return each()
