"""What is compared with an order: files as TFDS's reader hands them out, or index ranges."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.dataset.folders import folders_of
from shardctl.core.instructions.reads import Reads
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.reads_of_host import sorted_reads
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.short_form import settings_of_read, stages_of
from shardctl.core.stages.stages import Read
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import OTHER_FORMATS
from shardctl.files.stores.remote_path import RemotePath, path_of
from shardctl.planning.order import order_of
from shardctl.planning.sources import ResolvedSources, sources
from shardctl.planning.verify import FoundNames
from shardctl.readers.verifying.file_checks import first_file_here
from shardctl.tfds.builder_layout import builder_of
from shardctl.tfds.imports import tensorflow, tensorflow_datasets, without_autograph
from shardctl.tfds.stage_calls import StageCalls, instructions_of_host
from shardctl.tfds.training.pipeline import pipeline
from shardctl.tfds.training.read_config import fitted
from shardctl.tfds.training.records import RangeReader
from shardctl.tfds.training.resume import dataset_of_plan, resume
from shardctl.tfds.verifying.reading import (
    BATCH,
    EXAMPLE,
    Reading,
    Shape,
    said_by_tensorflow,
    shape_of,
)


def why_not_files(reads: Reads) -> str | None:
    """Return why rows are not read from the files that they name, None where they are.

    Raises:
        MissingDependencyError: the files are here and TFDS is not installed.
    """
    dataset = reads.dataset
    instead = "tf.data reads index ranges of the same lengths instead"
    if not len(reads):
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
    if dataset.is_counted and file_format == "parquet":
        return "TFDS reads Parquet files that it wrote itself, one column of examples"
    adapters = tensorflow_datasets("core.file_adapters")
    try:
        adapter = adapters.ADAPTER_FOR_FORMAT[adapters.FileFormat.from_value(file_format)]
        adapter.make_tf_data(os.devnull)
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
        lie_in = (folder.data_dir for folder in folders_of(dataset))
        folders = [folder for folder in dict.fromkeys(lie_in) if folder]
        with said_by_tensorflow(f"TFDS cannot open {quoted(folders[0], 200)}"):
            builder = builder_of(dataset)
        several = dataset is not resolved.dataset  # each with features of its own
        decoders = None if several else _one_feature(builder)
        return cls(resolved=resolved, codes=codes, builder=builder, decoders=decoders)

    def pipeline(self, settings: ReadSettings) -> Reading:
        """Return what `shardctl.tfds.pipeline` builds."""
        with said_by_tensorflow(f"TFDS refuses {quoted(self.resolved.spec)}"):
            elements = pipeline(
                self.builder,
                self._spec,
                settings,
                transform=without_autograph(_tfds_id),
                decoders=self.decoders,
                add_tfds_id=True,
            )
        reading = self._reading(elements)
        return replace(reading, shape=shape_of(stages_of(settings)))

    @property
    def _spec(self) -> str | None:
        """What the pipeline is asked for: of stages what the command was given."""
        resolved = self.resolved
        return resolved.given[1] if isinstance(resolved, ResolvedSources) else resolved.spec

    def resumed(self, plan: ResumePlan, host: int | None) -> Reading:
        """Return what `shardctl.tfds.resume` reads, to the end of all epochs."""
        with said_by_tensorflow(f"TFDS refuses {quoted(plan.spec)}"):
            elements = resume(
                self.builder,
                plan,
                host=plan.settings.host if host is None else host,  # whoever verifies
                transform=without_autograph(_tfds_id),
                decoders=self.decoders,
                add_tfds_id=True,
            )
        return replace(self._reading(elements), shape=_shape_of_rest(plan))

    def _reading(self, elements: Any) -> Reading:
        names = FoundNames(self.codes)

        def codes_of(batch: Any) -> Int64s:
            return names.codes_of(np.atleast_1d(batch).tolist())

        return Reading(elements=elements, codes_of=codes_of, unknown=names.unknown)


def _tfds_id(example: Any) -> Any:
    return example["tfds_id"]


# Features that cost more to decode than a number or a text.
_COSTLY = ("Image", "Video", "Audio", "Sequence", "Dataset", "FeaturesDict")


def _one_feature(builder: Any) -> Any:
    """Return the decoders that decode one feature alone, None where all have to be."""
    features = builder.info.features
    if not hasattr(features, "items"):
        return None  # no dict of features: left to TFDS to refuse
    names = sorted(
        features.keys(), key=lambda name: any(c in type(features[name]).__name__ for c in _COSTLY)
    )
    if not names:
        return None
    decode = tensorflow_datasets().decode
    name, skipped = names[0], {}
    if "Image" in type(features[name]).__name__:
        skipped[name] = decode.SkipDecoding()
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

    @property
    def dataset(self) -> Dataset:
        """The dataset whose files the ranges stand for."""
        return self.resolved.dataset

    def pipeline(self, settings: ReadSettings) -> Reading:
        """Return the dataset that `shardctl.tfds.pipeline` would build on files."""
        tf = tensorflow()
        if settings.global_seed is not None:  # its ops without a seed are counted anew
            tf.random.set_seed(settings.global_seed)
        parts: Mapping[Read, tuple[Dataset, Sequence[SplitRange]]] = {}
        if isinstance(self.resolved, ResolvedSources):
            parts = sources(*self.resolved.given, settings).parts

        def read_of(read: Read) -> Any:
            dataset, ranges = parts.get(read, (self.dataset, self.resolved.ranges))
            own = settings_of_read(settings, read)
            return self._read(dataset, ranges, own, asserts=read.has_cardinality)

        pipeline = stages_of(settings, lambda: order_of(self.resolved, settings).order.num_examples)
        elements = StageCalls(reader=read_of).dataset(pipeline)
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
        reads = sorted_reads(dataset, ranges, settings)
        reader = self._reader(settings, ordered=dataset.ordered)
        rows = instructions_of_host(reader.rows(reads), settings)
        if settings.shuffles_files:
            rows = rows.shuffle(
                len(reads), seed=settings.shuffle_seed, reshuffle_each_iteration=settings.reshuffle
            )
        if settings.is_endless:
            rows = rows.repeat()
        read = reader.interleaved(rows)
        knows_length = settings.host is None or settings.host_mode.knows_length
        if asserts and knows_length and not settings.is_endless:
            read = read.apply(tf.data.experimental.assert_cardinality(reads.num_examples))
        return read

    def resumed(self, plan: ResumePlan, host: int | None) -> Reading:
        """Return what `shardctl.tfds.resume` would read, to the end of all epochs."""
        here = fitted(self.dataset, plan, plan.settings.host if host is None else host)
        elements = dataset_of_plan(here, here.reader(RangeReader))
        return Reading(elements=elements, codes_of=_codes, shape=_shape_of_rest(plan))

    def _reader(self, settings: ReadSettings, *, ordered: bool) -> RangeReader:
        cycle = settings.cycle_length(ordered=ordered)
        return RangeReader(codes=self.codes, cycle=cycle, block=settings.block)


def _shape_of_rest(plan: ResumePlan) -> Shape:
    return EXAMPLE if plan.settings.batch is None else BATCH


def _codes(batch: Any) -> Int64s:
    codes: Int64s = np.atleast_1d(batch).astype(np.int64)
    return codes
