"""Read settings as the real thing: the TFDS and tf.data calls that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset, as_dataset
from shardctl.core.settings.read_settings import ReadSettings, refuse_loader
from shardctl.core.settings.reads import settings_of_read
from shardctl.core.settings.short_form import stages_of
from shardctl.core.stages.stages import Read
from shardctl.core.text import quoted
from shardctl.errors import UsageError
from shardctl.planning.file_formats import refuse_unreadable
from shardctl.planning.order import plan_order
from shardctl.planning.sources import spec_of_reader
from shardctl.tfds.builder_layout import Builder, dataset_of
from shardctl.tfds.imports import tensorflow, tensorflow_datasets
from shardctl.tfds.record_files import builder_of
from shardctl.tfds.stage_calls import (
    StageCalls,
    input_context_of_host,
    split_of_host,
)
from shardctl.tfds.training.global_seed import check_global_seed

Transform = Callable[[Any], Any]


@checked
def pipeline(
    builder: Builder,
    spec: str | None = None,
    settings: ReadSettings | None = None,
    *,
    transform: Transform | None = None,
    decoders: Any = None,
    add_tfds_id: bool = False,
) -> Any:
    """Return the `tf.data.Dataset` that settings describe, of TFDS's own reader and tf.data.

    The calls, in their order: `tf.random.set_seed(settings.global_seed)` where there is one,
    `builder.as_dataset` with a `tfds.ReadConfig`, `map(transform)`, then `shard`, `shuffle`,
    `repeat` and `batch`, each where the settings have it; or `settings.stages`, call by call. So
    iterating gives the order that `shardctl simulate` predicts for pass 0, and iterating again that
    of pass 1. A map among the stages leaves elements as they are; a reader of stages that names a
    dataset of its own finds it as `shardctl` does, in its folder.

    `transform` is a function of one example; it makes examples fit into a batch, or leaves of them
    `example["tfds_id"]` (a string scalar) with `add_tfds_id`. `decoders` is TFDS's own argument.

    Where the files repeat without end, the dataset is cut after `settings.epochs` of them. A cycle
    of "auto" is read as the number that it comes to on `settings.cpus`.

    Raises:
        UnpredictableOrderError: TensorFlow leaves the order open.
        UsageError: a global seed is in force in TensorFlow that the settings do not have and that
            changes the order (see `global_seed.check_global_seed`); a bad spec.
        MissingDependencyError: TensorFlow or TFDS is not installed.
    """
    settings = ReadSettings() if settings is None else settings
    refuse_loader(settings, "shardctl.tfds.pipeline", "simulate as code has its own pipeline")
    tf = tensorflow()
    dataset = dataset_of(builder)
    refuse_unreadable(dataset)
    planned = plan_order(dataset, spec, settings)
    if settings.global_seed is None:
        check_global_seed(settings, lambda: len(planned.order.reads))
    else:
        tf.random.set_seed(settings.global_seed)

    def read_of(part: Read) -> Any:
        own, of_own = (builder, dataset) if part.data is None else _referred(part.data)
        own_settings = settings_of_read(settings, part)
        config = tfds_config(own_settings, of_own, add_tfds_id=add_tfds_id)
        config.assert_cardinality &= part.has_cardinality
        made = own.as_dataset(
            split=split_of_host(spec_of_reader(part, of_own, spec), own_settings),
            read_config=config,
            shuffle_files=own_settings.shuffles_files,
            decoders=decoders,
        )
        if transform is not None:
            made = made.map(transform, num_parallel_calls=tf.data.AUTOTUNE)
        return made

    return StageCalls(reader=read_of).dataset(
        stages_of(settings, lambda: planned.order.num_examples)
    )


def _referred(reference: str) -> tuple[Any, Dataset]:
    """Return the builder of a dataset that a reader names, and the dataset."""
    dataset = as_dataset(reference)
    refuse_unreadable(dataset)
    if dataset.data_dir is None:
        raise UsageError(f"read(.., data={quoted(reference)}): its files are not on this machine")
    return builder_of(dataset), dataset


def tfds_config(settings: ReadSettings, dataset: Dataset, *, add_tfds_id: bool) -> Any:
    """Return the settings as a `tfds.ReadConfig`."""
    config = tensorflow_datasets().ReadConfig(
        add_tfds_id=add_tfds_id,
        shuffle_seed=settings.shuffle_seed,
        shuffle_reshuffle_each_iteration=settings.reshuffle,
        interleave_cycle_length=settings.cycle_length(ordered=dataset.ordered),
        interleave_block_length=settings.block,
        input_context=input_context_of_host(settings),
    )
    if settings.deterministic is not None:
        config.options.deterministic = settings.deterministic
    if settings.reverse:
        config.experimental_interleave_sort_fn = lambda files: files[::-1]
    if settings.file_order is not None:
        config.experimental_interleave_sort_fn = _by_list(settings.file_order)
    if settings.repeat_files:
        # TFDS asserts the number of one epoch, and would cache a stream without end.
        config.repeat_filenames = True
        config.assert_cardinality = config.try_autocache = False
    return config


def _by_list(names: tuple[str, ...]) -> Callable[[list[Any]], list[Any]]:
    """Return the sort function for a list of base names, or ends of paths where those repeat."""
    ranks: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        ranks.setdefault(name.rpartition("/")[2], []).append(index)

    def rank(file: Any) -> int:
        found = ranks.get(file.basename(), [])
        if len(found) > 1:
            path = str(file.filename)
            found = [i for i in found if path.endswith(f"/{names[i].strip('/')}")]
        if len(found) != 1:
            raise UsageError(f"the file order has no one place for {quoted(file.filename, 200)}")
        return found[0]

    return lambda files: sorted(files, key=rank)
