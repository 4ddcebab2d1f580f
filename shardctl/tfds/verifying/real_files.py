"""What TensorFlow really reads, as codes: files as TFDS reads them, or index ranges instead."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.progress import Progress
from shardctl.base.text import printable, quoted
from shardctl.base.tfds_rules import OTHER_FORMATS, POSITIONS
from shardctl.dataset.dataset import Dataset
from shardctl.dataset.folders import folders_of
from shardctl.errors import DatasetError, ShardctlError
from shardctl.order.epoch_reading import sorted_reads
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.plan_order import order_of
from shardctl.order.sources import ResolvedSources, sources
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import settings_of_read, stages_of
from shardctl.spec.reads import Reads
from shardctl.spec.subsplit import Resolved, SplitRange
from shardctl.stages import stages as call
from shardctl.stores.stores import RemotePath, path_of
from shardctl.tfds.builder_layout import builder_of
from shardctl.tfds.imports import tensorflow, tensorflow_datasets, without_autograph
from shardctl.tfds.training.pipeline import StageCalls, pipeline, shard_of_host
from shardctl.tfds.training.read_config import fitted
from shardctl.tfds.training.records import RangeReader, file_adapter
from shardctl.tfds.training.resume import dataset_of_plan, resume
from shardctl.verbs.verify.answer import FoundNames
from shardctl.verbs.verify.verify_files import first_file_here

BATCH_SIZE = 1024

# What an element is: an example, a batch of such as are below, or a tuple.
Shape = tuple[str, tuple["Shape", ...]]
EXAMPLE: Shape = ("example", ())
BATCH: Shape = ("batch", (EXAMPLE,))


def shape_of(pipeline: call.Pipeline) -> Shape:
    """Return what the elements of a pipeline are.

    >>> from shardctl.stages.text import parse_stages
    >>> shape_of(parse_stages("zip(a | batch(2), b) | batch(3)"))
    ('batch', (('tuple', (('batch', (('example', ()),)), ('example', ()))),))
    """
    source = pipeline.source
    shape = EXAMPLE
    if isinstance(source, call.Zip):
        shape = ("tuple", tuple(map(shape_of, source.inputs)))
    # All inputs of a mixture have the same shape.
    elif isinstance(source, call.SampleFromDatasets | call.ChooseFromDatasets):
        shape = shape_of(source.inputs[0])
    elif isinstance(source, call.Shared):
        shape = shape_of(source.pipeline)
    for stage in pipeline.stages:
        if isinstance(stage, call.Batch | call.Window):
            shape = ("batch", (shape,))
        elif isinstance(stage, call.Unbatch):
            # The inner shape of the batch that it undoes.
            shape = shape[1][0]
    return shape


def flattened(element: Any, shape: Shape) -> list[Any]:
    """Return the examples of an element, in the order in which they went in.

    >>> flattened((np.array([1, 2]), np.array([3, 4])), ("batch", (("tuple", (EXAMPLE,) * 2),)))
    [1, 3, 2, 4]
    """
    kind, inner = shape
    if kind == "example":
        # A scalar of NumPy or a plain value.
        return [element.item() if isinstance(element, np.generic | np.ndarray) else element]
    if kind == "tuple":
        parts = zip(element, inner, strict=True)
        return [example for part, of_part in parts for example in flattened(part, of_part)]
    # A batch of examples is a vector, and quick to list.
    if inner[0] == EXAMPLE:
        values: list[Any] = element.tolist()
        return values
    tf = tensorflow()
    # A batch of tuples or batches: a structure of arrays, cut into rows.
    rows = len(tf.nest.flatten(element)[0])
    return [
        example
        for row in range(rows)
        # The lambda is called at once, within its round of the loop.
        for example in flattened(tf.nest.map_structure(lambda part: part[row], element), inner[0])  # noqa: B023
    ]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A `tf.data.Dataset` of names or codes, single or within elements of a shape.

    `codes_of` makes codes (int64[n]) of a batch; `unknown` gives the name behind a code below 0, of
    names.
    """

    elements: Any
    codes_of: Callable[[Any], Int64s]
    shape: Shape = EXAMPLE
    unknown: Callable[[int], str] = str


@dataclass(kw_only=True, eq=False)
class Pass:
    """One iteration of a reading as pieces of codes, until its end or until TensorFlow gives up.

    `reason` is then what TensorFlow says, in a line; `num_done` counts what was yielded. `size`
    examples at a time are taken from a reading of single ones: with many the pass is fast, with one
    it ends exactly where TensorFlow gave up. `stop` cuts it. With `fit_epoch` it is what Keras
    trains on in that epoch of `fit`, the earlier ones read before.
    """

    reading: Reading
    size: int = 1
    stop: int | None
    fit_epoch: int | None = None
    progress: Progress | None = None
    reason: str | None = field(init=False, default=None)
    num_done: int = field(init=False, default=0)

    def __iter__(self) -> Iterator[Int64s]:
        try:
            for batch in self._batches():
                codes = self.reading.codes_of(batch)
                if self.stop is not None:
                    # The last piece is cut at `stop`.
                    codes = codes[: self.stop - self.num_done]
                self.num_done += len(codes)
                if self.progress is not None:
                    self.progress.advance(len(codes))
                yield codes
                # Without this, the next batch would be asked for, and might fail beyond what is
                # compared.
                if self.num_done == self.stop:
                    return
        # TensorFlow's own error ends the pass; its text is kept beside what was read.
        except tensorflow().errors.OpError as error:
            self.reason = reason_of(error)

    def _batches(self) -> Iterator[Any]:
        elements, shape = self.reading.elements, self.reading.shape
        if self.fit_epoch is not None:
            found = iter(fitted_epoch(elements, self.fit_epoch))
        elif shape == EXAMPLE:
            # `take` inside tf.data: then no more is read than is compared.
            elements = elements if self.stop is None else elements.take(self.stop)
            yield from (
                elements.batch(self.size) if self.size > 1 else elements
            ).as_numpy_iterator()
            return
        else:
            found = elements.as_numpy_iterator()
        if shape == BATCH:
            yield from found
            return
        for element in found:
            # dtype object: examples may be names or codes, and lengths differ.
            yield np.array(flattened(element, shape), object)


def iterate_whole(reading: Reading, times: int) -> None:
    """Read a dataset to its end so many times, for the seeds that this uses up."""
    elements = reading.elements
    if reading.shape == EXAMPLE:
        elements = elements.batch(BATCH_SIZE)
    for _ in range(times):
        # An error in an earlier pass shows in the compared one as well.
        with contextlib.suppress(tensorflow().errors.OpError):
            for _ in elements:
                pass


@contextlib.contextmanager
def said_by_tensorflow(what: str) -> Iterator[None]:
    """Turn what TensorFlow and TFDS raise while a pipeline is built into a line.

    Raises:
        DatasetError: `what`, and the first line of what they say.
    """
    try:
        yield
    except ShardctlError:
        raise
    except Exception as error:
        raise DatasetError(f"{what}: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """Return the first line of an error without the names of TensorFlow's nodes."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    # "{{node ..}}" at the start, "[Op:..] name:" at the end.
    text = re.sub(r"^(\{\{[^}]*\}\} ?)+|( ?\[Op:\w+\])? ?(name: ?)?$", "", lines[0])
    return printable(text, 300)


def fitted_epoch(elements: Any, epoch: int) -> list[Any]:
    """Return the elements that Keras trains on in one epoch of `fit`, the earlier ones read too."""
    tf = tensorflow()
    # tf.keras: the Keras that this TensorFlow goes with.
    keras = tf.keras
    epochs: list[list[Any]] = []
    spec = elements.element_spec

    class Recorder(keras.Model):  # type: ignore[misc,name-defined]  # keras is not typed
        # A model that trains nothing, and notes each batch with which Keras calls it.
        def train_step(self, batch: Any) -> dict[str, float]:
            def note(*parts: Any) -> None:
                values = [part.numpy() for part in parts]
                # Each note belongs to the epoch that began last.
                epochs[-1].append(tf.nest.pack_sequence_as(spec, values))

            tf.py_function(note, tf.nest.flatten(batch), [])
            return {"loss": 0.0}

    class EachEpoch(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            epochs.append([])

    # Eager: the Python function sees the values.
    model = Recorder()
    model.compile(run_eagerly=True)
    # All epochs from 0, since each uses up seeds.
    model.fit(elements, shuffle=False, epochs=epoch + 1, verbose=0, callbacks=[EachEpoch()])
    return epochs[epoch]


# What is compared with an order: files as TFDS's reader yields them, or index ranges.


def why_not_files(reads: Reads) -> str | None:
    """Return why rows are not read from the files that they name, None where they are.

    Raises:
        MissingDependencyError: the files are here and TFDS is not installed.
    """
    dataset = reads.dataset
    instead = "tf.data reads index ranges of the same lengths instead"
    if not len(reads) or dataset.file_format == POSITIONS:
        return "no file is read"
    here = first_file_here(reads)
    if here is None:
        return f"the files of {dataset.title} are not on this machine; {instead}"
    reason = _why_unreadable_there(here)
    if reason is not None:
        way_out = "`shardctl verify --files` does, and a copy on a disk can be verified"
        return f"{reason}; {way_out}; {instead}"
    reason = _why_unreadable(dataset)
    return None if reason is None else f"{reason}; {instead}"


def _why_unreadable_there(path: str) -> str | None:
    """Return why TensorFlow reads no file behind a URL, None where it does."""
    place = path_of(path)
    if not isinstance(place, RemotePath):
        return None
    if place.scheme not in tensorflow().io.gfile.get_registered_schemes():
        return f"TensorFlow does not read {place.scheme}:// files"
    # TensorFlow's reader of gs:// has no setting for another server.
    if place.scheme == "gs" and os.environ.get("STORAGE_EMULATOR_HOST"):
        return "TensorFlow reads gs:// files at Google alone, not at STORAGE_EMULATOR_HOST"
    return None


def _why_unreadable(dataset: Dataset) -> str | None:
    """Return why TFDS makes no tf.data.Dataset of files, by their format, None where it does."""
    file_format = dataset.file_format
    if file_format in OTHER_FORMATS:
        return f"TFDS does not read {file_format} files"
    if dataset.compression is not None:
        return f"TFDS reads TFRecord files as they are, and these are {dataset.compression}"
    # `is_counted`: without metadata, so not written by TFDS.
    if dataset.is_counted and file_format == "parquet":
        return "TFDS reads Parquet files that it wrote itself, one column of examples"
    try:
        # Only the type of the adapter matters, so an empty file will do.
        file_adapter(file_format).make_tf_data(os.devnull)
    except NotImplementedError:
        return f"TFDS reads {file_format} files through as_data_source alone, not through tf.data"
    except (ImportError, KeyError, ValueError):
        return f"TFDS cannot read {file_format} files here"
    return None


@dataclass(frozen=True, kw_only=True)
class RealFiles:
    """The dataset on disk; what comes out are tfds_ids, string scalars.

    Of each example one feature is decoded, the cheapest: a corrupt record is noticed by its
    checksum, an image that cannot be decoded is not.
    """

    resolved: Resolved
    codes: ExampleCodes
    builder: Any
    decoders: Any

    @classmethod
    def of(cls, resolved: Resolved, codes: ExampleCodes) -> RealFiles:
        """Return the files of a spec's dataset, opened by TFDS; `codes` are those of the spec.

        Raises:
            DatasetError: TFDS cannot open them.
            MissingDependencyError: TFDS is not installed.
        """
        dataset = resolved.dataset
        if isinstance(resolved, ResolvedSources):
            dataset = resolved.given[0]  # of the readers that name none; others find theirs
        # Several folders, each once, in order.
        lie_in = (folder.data_dir for folder in folders_of(dataset))
        folders = [folder for folder in dict.fromkeys(lie_in) if folder]
        with said_by_tensorflow(f"TFDS cannot open {quoted(folders[0], 200)}"):
            builder = builder_of(dataset)
        several = dataset is not resolved.dataset  # each with features of its own
        # With several datasets no one choice of features fits all.
        decoders = None if several else _one_feature(builder)
        return cls(resolved=resolved, codes=codes, builder=builder, decoders=decoders)

    def pipeline(self, settings: ReadSettings) -> Reading:
        """Return what `shardctl.tfds.pipeline` builds."""
        resolved = self.resolved
        # Of stages what the command was given.
        spec = resolved.given[1] if isinstance(resolved, ResolvedSources) else resolved.spec
        # An element of stages may be nested.
        shape = shape_of(stages_of(settings))
        return self._read(resolved.spec, shape, pipeline, spec, settings)

    def resumed(self, plan: ResumePlan, host: int | None) -> Reading:
        """Return what `shardctl.tfds.resume` reads, to the end of all epochs."""
        who = plan.settings.host if host is None else host  # whoever verifies
        return self._read(plan.spec, _shape_of_rest(plan), resume, plan, host=who)

    def _read(
        self, spec: str, shape: Shape, make: Callable[..., Any], *given: Any, **more: Any
    ) -> Reading:
        names = FoundNames(self.codes)
        how = {"decoders": self.decoders, "add_tfds_id": True, **more}
        with said_by_tensorflow(f"TFDS refuses {quoted(spec)}"):
            how["transform"] = without_autograph(lambda example: example["tfds_id"])
            elements = make(self.builder, *given, **how)

        def codes_of(batch: Any) -> Int64s:
            # A scalar of a single example, or a vector.
            return names.codes_of(np.atleast_1d(batch).tolist())

        return Reading(elements=elements, codes_of=codes_of, shape=shape, unknown=names.unknown)


# Features that cost more to decode than a number or a text.
_COSTLY = ("Image", "Video", "Audio", "Sequence", "Dataset", "FeaturesDict")


def _one_feature(builder: Any) -> Any:
    """Return the decoders that decode one feature alone, None where all have to be."""
    features = builder.info.features
    if not hasattr(features, "items") or not len(features):
        return None  # no dict of features: left to TFDS to refuse
    decode = tensorflow_datasets().decode
    # By the name of the class; False sorts before True, so a cheap feature wins, then the first by
    # name.
    costs = {n: any(c in type(features[n]).__name__ for c in _COSTLY) for n in sorted(features)}
    name = min(costs, key=costs.__getitem__)
    # An image's bytes are left as they are: reading is enough.
    skips = "Image" in type(features[name]).__name__
    skipped = {name: decode.SkipDecoding()} if skips else {}
    return decode.PartialDecoding({name: True}, decoders=skipped)


# Index ranges in place of files: the pipeline in real tf.data where nothing can be read.


@dataclass(frozen=True, kw_only=True)
class IndexRanges:
    """A range of codes for each file instruction; what comes out are codes, int64 scalars.

    The calls are those of TFDS core/reader.py, _read_files, with `tf.data.Dataset.range` for the
    file adapter; TFDS need not be installed.
    """

    resolved: Resolved
    codes: ExampleCodes

    def pipeline(self, settings: ReadSettings) -> Reading:
        """Return the dataset that `shardctl.tfds.pipeline` would build on files."""
        tf = tensorflow()
        if settings.global_seed is not None:  # its ops without a seed are counted anew
            tf.random.set_seed(settings.global_seed)
        parts: Mapping[call.Read, tuple[Dataset, Sequence[SplitRange]]] = {}
        if isinstance(self.resolved, ResolvedSources):
            parts = sources(*self.resolved.given, settings).parts

        def read_of(read: call.Read) -> Any:
            dataset, ranges = parts.get(read, (self.resolved.dataset, self.resolved.ranges))
            own = settings_of_read(settings, read)
            return self._read(dataset, ranges, own, asserts=read.has_cardinality)

        # The number of examples is asked only if a stage needs it.
        pipeline = stages_of(settings, lambda: order_of(self.resolved, settings).order.num_examples)
        elements = StageCalls(reader=read_of, pad=self.codes.num_codes - 1).dataset(pipeline)
        return Reading(elements=elements, codes_of=_codes, shape=shape_of(pipeline))

    def _read(
        self,
        dataset: Dataset,
        ranges: Sequence[SplitRange],
        settings: ReadSettings,
        *,
        asserts: bool = True,
    ) -> Any:
        """Return what stands for the reader of ranges, behind its assertion where it has one."""
        tf = tensorflow()
        # The order of calls is that of TFDS core/reader.py, _read_files: sort, shard, shuffle,
        # repeat, interleave, assertion.
        reads = sorted_reads(dataset, ranges, settings)
        cycle = settings.cycle_length(ordered=dataset.ordered)
        reader = RangeReader(codes=self.codes, cycle=cycle, block=settings.block)
        rows = shard_of_host(reader.rows(reads), settings, "files")
        if settings.shuffles_files:
            # TFDS's buffer is the number of all instructions, not only of this host's.
            rows = rows.shuffle(
                len(reads), seed=settings.shuffle_seed, reshuffle_each_iteration=settings.reshuffle
            )
        if settings.is_endless:
            rows = rows.repeat()
        read = reader.interleaved(rows)
        # TFDS asserts the number of examples, except where hosts share files or files repeat.
        knows_length = settings.host is None or settings.host_mode.knows_length
        if asserts and knows_length and not settings.is_endless:
            read = read.apply(tf.data.experimental.assert_cardinality(reads.num_examples))
        return read

    def resumed(self, plan: ResumePlan, host: int | None) -> Reading:
        """Return what `shardctl.tfds.resume` would read, to the end of all epochs."""
        here = fitted(self.resolved.dataset, plan, plan.settings.host if host is None else host)
        elements = dataset_of_plan(here, here.reader(RangeReader))
        return Reading(elements=elements, codes_of=_codes, shape=_shape_of_rest(plan))


def _shape_of_rest(plan: ResumePlan) -> Shape:
    return EXAMPLE if plan.settings.batch is None else BATCH


def _codes(batch: Any) -> Int64s:
    codes: Int64s = np.atleast_1d(batch).astype(np.int64)
    return codes
