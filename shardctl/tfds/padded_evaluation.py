"""Padded evaluation: each example once, batches of one shape, equally many steps on every host."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.phrase import option
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError, UsageError
from shardctl.order.epoch_reading import sorted_reads
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.resolved_spec import format_warnings, refuse_open_splits, refuse_unreadable
from shardctl.settings.keywords import ReaderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings, refuse_loader
from shardctl.spec.host import Host, HostLike, as_host
from shardctl.spec.reads import Reads, reads_of
from shardctl.spec.subsplit import SplitRange
from shardctl.tfds.builder_layout import Builder, dataset_of
from shardctl.tfds.imports import tensorflow, without_autograph
from shardctl.tfds.training.pipeline import Transform, shard_of_host
from shardctl.tfds.training.read_config import hosts_said
from shardctl.tfds.training.records import RecordReader
from shardctl.verbs.eval.answer import Evaluation, evaluate

# All other settings train: they shuffle, repeat or batch. See `_check_settings`.
_OF_AN_EVALUATION = frozenset(
    ("cycle", "cpus", "block", "deterministic", "reverse", "file_order", "host", "host_by")
)


@checked
def evaluation(
    builder: Builder,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    batch: int | None = None,
    batch_per_device: int | None = None,
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
    **keywords: Unpack[ReaderSettings],
) -> Any:
    """Return the `tf.data.Dataset` of one host's evaluation: padded batches, each with its mask.

    The plan is that of `shardctl eval --pad`. Over all hosts each example comes once with a true
    mask. Every batch has one static shape, so that a step is compiled once. Every host makes the
    same number of steps, if need be with batches of padding at the end, so no host waits in a
    collective. Examples come in the order of `shardctl simulate` for the host, which opens no other
    files; a host without examples opens one, for an example to repeat. `len(dataset)` is known.
    Examples are read anew in each iteration; `.cache()` after it keeps what is small.

    An element is `(examples, mask)`. If an example is a tuple, the mask is appended to it: of
    `(x, y)` it is `(x, y, mask)`. The mask is bool[batch]. Padding repeats an example of
    the dataset, so that it is finite where examples are: a NaN that zeros give (a mean over none)
    would get past a mask that it is multiplied by.

    Args:
        builder: a TFDS builder, or what `record_files` returns.
        spec: what is evaluated on; None is `test`, `validation`, else `train`.
        settings, keywords: how hosts share the examples (`host_by`), and the order of the files;
            what shuffles, repeats or batches is refused.
        batch: the batch size of this host, which its devices share, as in `shardctl eval`.
        batch_per_device: the batch size of a device, in place of `batch`.
        hosts, host: which host of how many this is: `host=2, hosts=8`, or `host="2/8"`. Without
            host JAX is asked, if it runs as several processes, and tf.distribute; if neither
            knows, there is one host.
        devices: how many this host has; they share its batch.
        device_axis: whether batches are (devices, batch_per_device, ..), as `jax.pmap` takes them,
            in place of (batch, ..).
        padding: "repeat", or "zeros", for which no host opens a file of another.
        sample_weight: whether elements are `(x, y, sample_weight)` for Keras, of examples `(x, y)`
            or `(x, y, weight)`; `shardctl help keras-evaluation` says which metrics heed it.
        as_supervised: as of `as_dataset`, examples as `(x, y)`.
        transform: a function of one example, as for `Dataset.map`, that makes all one shape.
        decoders, add_tfds_id: as of `shardctl.tfds.pipeline`.

    Raises:
        UsageError: a bad spec or number, settings of a training, components without one shape, or
            hosts that contradict what runs here.
        DatasetError: the files cannot be read by tf.data, or the dataset has no examples at all.
        UnpredictableOrderError: the order is nondeterministic, so hosts would not share the
            examples.
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
    # Checked before the hosts are resolved: with a nondeterministic order two hosts could read the
    # same example and both miss another.
    settings.check_predictable(ordered=dataset.ordered)
    reading = own_host(hosts, host, settings.host)
    settings = replace(settings, host=reading)
    plan = evaluate(
        dataset,
        spec,
        settings,
        batch=batch,
        batch_per_device=batch_per_device,
        hosts=reading.count,
        devices=devices,
        remainder="pad",
    )
    refuse_open_splits(plan.resolved)
    for warning in format_warnings(dataset, plan.resolved.ranges):
        warnings.warn(warning, stacklevel=3)  # past @checked
    own = HostExamples(
        plan=plan,
        host=reading,
        builder=builder,
        transform=_supervised(builder, transform) if as_supervised else transform,
        decoders=decoders,
        with_ids=add_tfds_id,
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


def _supervised(builder: Any, transform: Transform | None) -> Transform:
    """Return a transform of the features that `as_supervised` of TFDS returns, as it has them."""
    keys, nest = builder.info.supervised_keys, tensorflow().nest

    def pair(example: Any) -> Any:
        # `supervised_keys` may be nested, as ((a, b), c); the pair takes the same structure (TFDS
        # core/dataset_builder.py, as_dataset with as_supervised).
        made = nest.map_structure(example.__getitem__, keys)
        if transform is None:
            return made
        return transform(*made) if isinstance(made, tuple) else transform(made)

    return pair


def _check_settings(settings: ReadSettings) -> None:
    """Refuse what trains and does not evaluate: shuffles, epochs, batches, stages."""
    others = [
        option(field.name, getattr(settings, field.name))
        for field in fields(ReadSettings)
        if field.name not in _OF_AN_EVALUATION and getattr(settings, field.name) != field.default
    ]
    if others:
        raise UsageError(
            "an evaluation reads each example once, in the order of the files and in batches "
            f"of --batch: its settings take no {' and '.join(others)}"
        )


# The caller's word comes first, then what JAX and tf.distribute report.
# Which host of how many reads in this process: as the caller says, else as what runs here says.

ALONE = Host(index=0, count=1)


def own_host(hosts: int | None, host: int | HostLike | None, of_settings: Host | None) -> Host:
    """Return the host that this process is to read as.

    What the caller says is believed: `host` as a `Host` or its text `I/N`, as an index of `hosts`,
    or the host of the settings. Else JAX and tf.distribute are asked, as `check_host` does; if
    neither reports a host, the process is alone.

    Raises:
        UsageError: two of these contradict each other, or an index without a number of hosts.

    >>> own_host(8, 2, None)
    Host(index=2, count=8)
    >>> own_host(None, None, None)
    Host(index=0, count=1)
    """
    host = as_host(host) if isinstance(host, str) else host
    if hosts is not None and hosts < 1:
        raise UsageError(f"hosts={hosts}: a number from 1 is needed")
    if of_settings is not None:
        # A host given twice is fine as long as both mean the same one.
        if host not in (None, of_settings, of_settings.index):
            raise UsageError(f"host={host}: the settings are for host {of_settings}; leave one out")
        host = of_settings
    if not isinstance(host, Host):
        if host is not None and hosts is not None:
            return Host(index=host, count=hosts)
        if hosts == 1:
            return ALONE
        said = dict(hosts_said())
        found = [*dict.fromkeys(said.values())]
        # JAX and tf.distribute may both be running; one answer that both give is no contradiction.
        if len(found) > 1:
            told = " and ".join(f"{one.index} of {one.count} by {by}" for by, one in said.items())
            raise UsageError(f"this process is host {told}; say which with host= and hosts=")
        # Half an answer (an index without a count, or the reverse) is not completed by a guess.
        if host is not None or (hosts is not None and not found):
            given = f"hosts={hosts}: which of them" if host is None else f"host={host}: of how many"
            raise UsageError(f"{given} is this? give both, as in host='I/N'")
        host = found[0] if found else ALONE
    # A `Host` knows its own count; it is compared with the `hosts` that the caller gave besides.
    if hosts not in (None, host.count):
        raise UsageError(f"hosts={hosts}: the host is {host}, one of {host.count}")
    return host


# Examples as padded batches of one static shape, with a mask of the real ones.


def padded_batches(
    own: HostExamples, *, repeats: bool, device_axis: bool, sample_weight: bool
) -> Any:
    """Return the `tf.data.Dataset` of a host's batches, each with its mask.

    Padding stands behind the examples, so that batches are cut from one stream without a copy more
    than `Dataset.batch` makes. It `repeats` an example of the dataset, or is zeros. With
    `sample_weight` the mask becomes the weights of Keras.

    Raises:
        UsageError: examples of different shapes, what has none, or no (x, y) to weigh.
    """
    tf = tensorflow()
    plan, num_steps = own.plan, own.num_steps
    # Shapes are checked on the spec, before a single example is read.
    examples = own.examples()
    _check_shapes(examples.element_spec)
    if sample_weight:
        _check_weighable(examples.element_spec)
    # Every host makes `num_steps` full batches; what its own examples do not fill is padding.
    num_padding = num_steps * plan.host_batch - own.num_examples
    if num_padding:
        # `cache()` reads the example that is repeated once, not once for each padded row.
        if repeats:
            one = own.one_example().cache()
        else:
            spec, zeros = examples.element_spec, lambda of: tf.zeros(of.shape, of.dtype)
            one = tf.data.Dataset.from_tensors(tf.nest.map_structure(zeros, spec))
        examples = examples.concatenate(one.repeat(num_padding))
    # Examples and padding come to a multiple of the batch exactly, so nothing is dropped.
    # `drop_remainder` makes the first dimension static.
    batches = examples.batch(plan.host_batch, drop_remainder=True)
    attach = _weighted if sample_weight else _masked

    def finish(step: Any, batch: Any) -> Any:
        # Rows of the batch, counted over all batches: shape (batch,). Padding is at the end, so a
        # row is real if its number is below that of the examples.
        places = step * plan.host_batch + tf.range(plan.host_batch, dtype=tf.int64)
        finished = attach(batch, places < own.num_examples)
        if not device_axis:
            return finished
        # (devices * batch, ..) becomes (devices, batch, ..), the mask as well.
        shape = (plan.num_devices, plan.device_batch)
        return tf.nest.map_structure(
            lambda value: tf.reshape(value, (*shape, *value.shape[1:])), finished
        )

    numbered = tf.data.Dataset.zip((tf.data.Dataset.range(num_steps), batches))
    made = numbered.map(without_autograph(finish)).prefetch(tf.data.AUTOTUNE)
    # A host's dataset is its own part; tf.distribute is not to share it again.
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return made.with_options(options)


def _masked(batch: Any, mask: Any) -> Any:
    # A namedtuple is a structure of its own, and stays one.
    return (*batch, mask) if type(batch) is tuple else (batch, mask)


def _weighted(batch: Any, mask: Any) -> Any:
    tf = tensorflow()
    x, y, *weights = batch
    if not weights:
        return x, y, tf.cast(mask, tf.float32)  # of bools tf.distribute makes no mean

    def without_padding(weight: Any) -> Any:
        # The mask has shape (batch,); it becomes (batch, 1, .., 1) to match a weight for each time
        # step.
        real = tf.reshape(mask, (-1, *[1] * (len(weight.shape) - 1)))
        # `where` and not a product: a weight of the padding may be NaN, and NaN times 0 is NaN.
        return tf.where(real, weight, tf.zeros((), weight.dtype))

    return x, y, tf.nest.map_structure(without_padding, weights[0])


def _check_shapes(element_spec: Any) -> None:
    """Refuse what cannot be a batch of one shape, by its name.

    Raises:
        UsageError: a shape that is open, or what is no plain tensor.
    """
    from tensorflow.python.util import nest  # no public name

    for name, spec in nest.flatten_with_joined_string_paths(element_spec):
        if isinstance(spec, tensorflow().TensorSpec) and spec.shape.is_fully_defined():
            continue
        kind = type(spec).__name__.removesuffix("Spec")
        raise UsageError(
            f"example{name and f' {name}'} is a {kind} of shape {getattr(spec, 'shape', None)}: "
            "a batch of one shape is made of plain tensors of one shape; make it one in transform, "
            "as by tf.pad, tf.image.resize, tf.ensure_shape, to_tensor(shape=..) or "
            "tf.sparse.to_dense, or leave it out there"
        )


def _check_weighable(element_spec: Any) -> None:
    """Refuse what Keras would take for something else than inputs and targets.

    Raises:
        UsageError: examples that are no tuple of two or three.
    """
    if type(element_spec) is not tuple or len(element_spec) not in (2, 3):
        found = f"a tuple of {len(element_spec)}" if type(element_spec) is tuple else "no tuple"
        raise UsageError(
            "sample_weight=True: Keras weighs y of examples (x, y), and an example is "
            f"{found}; return (x, y) from transform, or (x, y, weight)"
        )


# The examples of one host in an evaluation, and one example to pad with.


@dataclass(frozen=True, kw_only=True)
class HostExamples:
    """What a host reads of the plan of an evaluation, as TFDS's reader reads and decodes it.

    Not by `as_dataset`: its decoding keeps no order where a user's options let it go, and hosts of
    `ds.shard` that read each another one would not share the examples.
    """

    plan: Evaluation
    host: Host
    builder: Any
    transform: Transform | None
    decoders: Any
    with_ids: bool

    @property
    def num_examples(self) -> int:
        """Number of examples of this host, 0 where there are fewer examples than hosts."""
        return int(self.plan.num_examples[self.host.index])

    @property
    def num_steps(self) -> int:
        """Number of batches that every host makes."""
        return int(self.plan.num_steps("pad")[self.host.index])

    def examples(self) -> Any:
        """Return the `tf.data.Dataset` of this host's examples, in the order of `simulate`."""
        # `take(0)` keeps the element spec, which the padding and the batches need.
        if not self.num_examples:
            return self.one_example().take(0)
        settings = replace(self.plan.settings, host=self.host)  # the plan is of all hosts
        return self._decoded(self._own, self.num_examples, settings)

    def one_example(self) -> Any:
        """Return the `tf.data.Dataset` of one example, of the files of this host if it has any."""
        dataset = self.plan.dataset
        whole = [
            SplitRange(split=s, start=0, stop=s.num_examples)
            for s in dataset.splits
            if s.num_examples
        ]
        # From the nearest to the farthest: files of this host, files of the spec, any file of the
        # dataset. Only the last can be missing.
        for reads in (self._own, self.plan.reads, reads_of(dataset, whole)):
            filled = np.flatnonzero(reads.take)
            if len(filled):
                # One instruction, cut to one example.
                first = replace(reads.select(filled[:1]), take=np.ones(1, np.int64))
                return self._decoded(first, 1, replace(self.plan.settings, host=None))
        raise DatasetError(
            f"{dataset.title} has no examples at all, so nothing says what a batch looks like"
        )

    @cached_property
    def _own(self) -> Reads:
        """The file instructions of this host, of `ds.shard` those of all."""
        plan = self.plan
        settings = replace(plan.settings, host=self.host)
        reads = sorted_reads(plan.dataset, plan.resolved.ranges, settings)
        # The same rule as that of `simulate`: rows (start, stop, step) of the sorted instructions.
        rows = plan.settings.host_mode.own_instructions(len(reads), self.host)
        return reads.select(np.arange(*rows.indices(len(reads))))

    def _decoded(self, reads: Reads, num_records: int, settings: ReadSettings) -> Any:
        # The codes of examples are counted over the whole plan, so that ids are those of the split.
        # A plan without examples has none, and the instruction at hand serves.
        every = self.plan.reads if self.plan.total else reads
        names = [every.split_names[split] for split in dict.fromkeys(every.split.tolist())]
        reader = RecordReader(
            builder=self.builder,
            codes=ExampleCodes(self.plan.dataset, names, every),
            cycle=settings.cycle_length(ordered=self.plan.dataset.ordered),
            block=settings.block,
            with_ids=self.with_ids,
        )
        data = tensorflow().data
        # `ds.shard` (host_by="examples") comes behind the reader; the other modes have chosen files
        # before.
        records = shard_of_host(reader.read(reads), settings, "examples")
        # `shard` loses the known length; the plan has it.
        known = data.experimental.assert_cardinality(num_records)
        examples = reader.decode(records.apply(known), self.decoders)
        if self.transform is None:
            return examples
        return examples.map(self.transform, num_parallel_calls=data.AUTOTUNE, deterministic=True)
