"""What TFDS puts behind its interleave: assertion, options, decoding, autocache and prefetch.

Sources: TFDS core/reader.py, _read_files and Reader.read_files; core/dataset_builder.py,
_build_single_dataset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardctl.core.stages.stages import WithOptions
from shardctl.tfds.recognizing.graph import NoConstantError, Operation
from shardctl.tfds.recognizing.options import Options, options_of
from shardctl.tfds.recognizing.reader import FoundReader
from shardctl.tfds.recognizing.stage_of import deterministic, keeps_in_memory

_MAPS = ("MapDataset", "ParallelMapDatasetV2")


@dataclass(frozen=True, kw_only=True, eq=False)
class BehindReader:
    """A reader with what belongs to it, the options that it states, and what is left behind it."""

    reader: FoundReader
    options: tuple[tuple[WithOptions, Operation], ...]
    rest: tuple[Operation, ...]


def behind_tfds(reader: FoundReader, rest: tuple[Operation, ...], options: Options) -> BehindReader:
    """Return TFDS's reader with all that TFDS itself puts behind it.

    An autocache belongs to it where no order changes by it; else it is a stage, as it would be
    in a script. So is all that `as_supervised` and `batch_size` add.
    """
    found = _Found(reader, list(rest))
    asserted = found.next("AssertCardinalityDataset")
    found.reader = replace(found.reader, asserts_cardinality=asserted is not None)
    stated = found.next("OptionsDataset")
    decoding = found.next(*_MAPS)
    if decoding is not None and options.hands_out_what_is_ready and _runs_ahead(decoding):
        found.reader = replace(found.reader, in_order="false", decodes_in_order=False)
    if _keeps_its_order(reader) and found.rest and keeps_in_memory(found.rest[0]):
        found.next("CacheDatasetV2")
    found.next("PrefetchDataset")
    own = []
    if stated is not None:
        said = options.in_force(options_of(stated))
        if said.deterministic and found.reader.in_order == "true":
            settings = (*found.reader.settings, ("deterministic", True))
            found.reader = replace(found.reader, settings=settings)
        if said.deterministic is not False:  # parallel maps of the script go by that too
            said = replace(said, deterministic=None)
        if said != WithOptions():
            own.append((said, stated))
    return BehindReader(reader=found.reader, options=tuple(own), rest=tuple(found.rest))


class _Found:
    def __init__(self, reader: FoundReader, rest: list[Operation]) -> None:
        self.reader = reader
        self.rest = rest

    def next(self, *ops: str) -> Operation | None:
        """Return the next operation where it is one of these, which the reader then has."""
        if not self.rest or self.rest[0].op not in ops:
            return None
        operation = self.rest.pop(0)
        self.reader = replace(self.reader, operations=(*self.reader.operations, operation))
        return operation


def _runs_ahead(decoding: Operation) -> bool:
    """Return whether a map that options decide hands out what is ready first."""
    if decoding.op == "MapDataset" or deterministic(decoding) is not None:
        return False
    try:
        return decoding.number("num_parallel_calls") != 1
    except NoConstantError:
        return True


def _keeps_its_order(reader: FoundReader) -> bool:
    """Return whether every pass reads alike, so that a cache changes nothing."""
    settings = dict(reader.settings)
    return not settings.get("repeat_files") and (
        not settings.get("shuffle_files") or settings.get("reshuffle") is False
    )
