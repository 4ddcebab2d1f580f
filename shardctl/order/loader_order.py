"""The order in which a loader other than TFDS's yields the examples of a dataset.

The loader's rule (`loaders/`) knows lengths and settings; here its indices become examples. Also
here: which version of the loader's library is in force, and whether its rule is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, Int64sLike, last_not_above
from shardctl.base.by_name import provided
from shardctl.base.phrase import refused
from shardctl.base.text import choices
from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS, Loader, VerifiedVersion, proven_as, same_version
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSequence, LoaderSource
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import CHUNK_SIZE, Order, Origin, Over
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.reads import Reads, joined, reads_of
from shardctl.spec.subsplit import SplitRange

if TYPE_CHECKING:
    from shardctl.stages.stages import ByData, Read


class LoaderOrder(Order):
    """Every example that one process of a loader yields, over all epochs, counted from 0.

    A loader counts the examples of a spec by their index, in the order of their files. Its rule
    (`loader`) knows lengths and settings alone; here indices become codes.

    Raises:
        UnpredictableOrderError: with these settings the order is nondeterministic.
        UsageError: the loader refuses these settings, or its rule does not know them.
    """

    continued_by = "loader"
    unshuffled = "examples come in the order of storage"

    sequence: LoaderSequence

    def __init__(
        self,
        dataset: Dataset,
        ranges: Sequence[SplitRange],
        settings: ReadSettings,
        *,
        version: str | None = None,
        assumptions: Sequence[str] = (),
        origins: Mapping[Read, Origin] | None = None,
        parts: Mapping[Read, Sequence[SplitRange]] | None = None,
    ) -> None:
        """`assumptions` are those of the caller, in addition to those of the loader's rule.

        Of a chain `origins` and `parts` say what each of its readers reads; their ranges one after
        the other are `ranges`.
        """
        self.dataset = dataset
        self.settings = settings
        self.loader: Loader = LOADERS[settings.loader]
        self.version = version or settings.loader_version or self.loader.proven[-1]
        self.ranges = tuple(ranges)
        self.given = self.reads = reads_of(dataset, ranges)
        self.codes = ExampleCodes(dataset, [piece.split.name for piece in ranges], self.given)
        # int64[rows + 1]: the loader's index of the first example of each row, and the total at the
        # end.
        self._starts = np.concatenate([[0], np.cumsum(self.reads.take)])
        host = settings.host
        # The settings that a rule and the user call by the same name go over as they are; those
        # whose meaning differs are set one by one below.
        own = {field.name for field in fields(LoaderConfig)} & {
            field.name for field in fields(settings)
        }
        alike = {name: getattr(settings, name) for name in own - {"host", "workers"}}
        self.config = LoaderConfig(
            **alike,
            lengths=self.reads.take,
            version=self.version,
            seed=settings.shuffle_seed,
            first_epoch=settings.pass_index,
            shares=host is not None,
            host=0 if host is None else host.index,
            num_hosts=1 if host is None else host.count,
            workers=settings.workers or 0,
            file_format=dataset.file_format,
            shard_lengths=self._lengths_of_shards(self.ranges, self.reads),
            sources=self._sources(parts or {}),
            kept=None if settings.stages is None else partial(_kept, self.codes, self.reads),
        )
        self.origins = origins or {}
        self.sources = tuple(origin.name for origin in self.origins.values())
        self.sequence = self.loader.sequence(self.config)
        self._assumptions = tuple(assumptions)
        self.epoch_size = self.sequence.epoch_size
        self.num_examples = self.sequence.num_examples
        self.shuffles = self.sequence.shuffles
        self.is_uniform = self.sequence.is_uniform
        self.is_made_whole = self.sequence.is_made_whole
        self.num_in_turn = self.sequence.num_in_turn
        self.is_endless = self.sequence.is_endless

    def __getstate__(self) -> dict[str, Any]:
        # Orders go to worker processes by pickle, and closures cannot be pickled: rebuilt on
        # arrival.
        return {**self.__dict__, "sequence": None}  # rules have functions of their own in them

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, sequence=state["loader"].sequence(state["config"]))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the order depends on although no setting states it, a sentence each."""
        return (*self._assumptions, *self.sequence.assumptions)

    def assuming(self, assumptions: Iterable[str]) -> LoaderOrder:
        """Return the same order with other assumptions of its caller."""
        made = copy(self)
        made._assumptions = tuple(assumptions)
        return made

    def _sources(self, parts: Mapping[Read, Sequence[SplitRange]]) -> dict[Read, LoaderSource]:
        """Return what the readers of a chain read, counted one after the other as `codes_of`."""
        found, first = {}, 0
        for read, ranges in parts.items():
            reads = reads_of(self.dataset, ranges)
            found[read] = LoaderSource(
                first=first,
                lengths=reads.take,
                shard_lengths=self._lengths_of_shards(ranges, reads),
                file_format=self.dataset.file_format,
            )
            first += int(reads.take.sum())
        return found

    @staticmethod
    def _lengths_of_shards(ranges: Sequence[SplitRange], reads: Reads) -> Int64s:
        """Return how many examples the files have, empty ones too where splits are read whole."""
        # Some loaders (datasets) share whole files among workers, so that empty files count as
        # well. Of a part of a split only the files with examples are known here.
        if all(piece.start == 0 and piece.stop == piece.split.num_examples for piece in ranges):
            return np.concatenate(
                [np.empty(0, np.int64), *(piece.split.lengths64() for piece in ranges)]
            )
        return reads.examples_in_shard

    @property
    def has_steps(self) -> bool:
        """Whether examples come in batches."""
        return self.sequence.batches is not None

    @property
    def batch_size(self) -> int | None:
        """Number of examples in the first batch, which a chain may form, too; None without."""
        if self.config.stages is None:
            return super().batch_size
        return len(self.positions_in_step(0)) if self.has_steps and self.num_steps else None

    def _chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        # An index is computed from its position alone, so any piece costs the same.
        for begin in range(start, stop, CHUNK_SIZE):
            yield self._codes_at(np.arange(begin, min(begin + CHUNK_SIZE, stop)))

    def _codes_at(self, positions: Int64s) -> Int64s:
        return self.codes_of(self.sequence.indices_at(positions))

    def _found(self, codes: Int64s, over: Over) -> Iterator[tuple[Int64s, Int64s]]:
        if self.is_endless:
            raise UsageError(
                "the chain has no end, so an example comes again and again; end it with repeat(N), "
                "or ask for positions"
            )
        query, rows, offsets = self.lookup.rows_of(codes)
        # From codes to rows, from rows to the loader's indices, from those to positions: `which`
        # points into the second step, so that `query[which]` is the code asked for.
        which, positions = self.sequence.positions_of(self._starts[rows] + offsets)
        return iter([(query[which], positions)])

    def _epochs_at(self, positions: Int64s) -> Int64s:
        return self.sequence.epochs_at(positions)

    @property
    def num_steps(self) -> int | None:
        """Number of batches of all epochs."""
        batches = self.sequence.batches
        return self.num_examples if batches is None else batches.num_batches

    def _steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        batches = self.sequence.batches
        if batches is None:
            return positions, np.zeros_like(positions)
        return batches.steps_of(positions)

    def _in_step(self, step: int) -> range:
        batches = self.sequence.batches
        return range(step, step + 1) if batches is None else range(*batches.bounds(step))

    @checked
    def indices_at(self, positions: Int64sLike) -> Int64s:
        """Return the indices of the examples at any positions, as the loader counts, int64[q]."""
        return self.sequence.indices_at(self._checked(positions))

    @cached_property
    def reads_of_epoch(self) -> Reads:
        """What this process reads in its first epoch: a piece of storage, or some of all of it."""
        pieces = self.sequence.among
        if pieces is None:
            return self.reads
        # Pieces are ranges of the loader's indices; the empty first part makes `joined` accept
        # none.
        parts = [self.reads.between(piece.start, piece.stop) for piece in pieces if len(piece)]
        return joined([self.reads.select(slice(0, 0)), *parts])

    def codes_of(self, indices: Int64s) -> Int64s:
        """Return the codes of examples that a loader names by their index, int64[q]."""
        rows = last_not_above(self._starts, indices)
        codes: Int64s = self._first_codes[rows] + indices - self._starts[rows]
        return codes


def _kept(codes: ExampleCodes, reads: Reads, stage: ByData) -> Callable[[Int64s], Int64s]:
    """Return what the file of a stage says of examples, by the indices that a loader counts.

    No method of an order: configurations go to worker processes without their order.
    """
    kept = provided("kept")(stage.name, stage.kept, codes)
    starts, first = np.concatenate([[0], np.cumsum(reads.take)]), codes.first_codes(reads)

    def of(indices: Int64s) -> Int64s:
        rows = last_not_above(starts, indices)
        found: Int64s = kept.values(first[rows] + indices - starts[rows])
        return found

    return of


# Of which version of its library the order of a loader is to be, and whether that is proven.


@dataclass(frozen=True, kw_only=True)
class LoaderVersion:
    """The version in force, and what surprises about it.

    is_proven: whether the rule agreed with it where shardctl is made; else it was verified here.
    assumptions: what is taken for granted where nothing says which version it is, in sentences.
    """

    version: str
    is_proven: bool = True
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


def loader_version(settings: ReadSettings) -> LoaderVersion:
    """Return the version that is named, else the installed one, else the newest that is proven.

    Nothing is imported for it. A version is proven as `loaders/loader.py` says; another one
    is taken where `verify` has found it equal on this machine. The packages beside a library, as
    torch beside torchdata, count where the installed version is taken.

    Raises:
        UsageError: the version is neither proven nor verified, and its source is of none proven.
    """
    loader, named = LOADERS[settings.loader], settings.loader_version
    if named is not None:
        # In this order: proven here, else verified on this machine, else of a source that is
        # proven, else refused. `_refuse` always raises.
        found = _proven(loader, named) or _verified(loader, named)
        return found or _same_source(loader, named) or _refuse(loader, named)
    installed = provided("installed_version")(loader.library)
    if installed is None:
        newest = loader.proven[-1]
        said = (
            f"{loader.library} {newest}, since none is installed here; --loader-version {newest} "
            "leaves this out"
        )
        return LoaderVersion(version=newest, assumptions=(said,))
    found = installed_loader_version(loader, installed)
    found = found or _same_source(loader, installed)
    return found or _refuse(loader, installed, is_installed=True)


def with_version(settings: ReadSettings) -> ReadSettings:
    """Return settings that name the version in force; TFDS's reader has none to name.

    Raises:
        UsageError: the version is neither proven nor verified.
    """
    if not settings.reader.proven:
        return settings
    return replace(settings, loader_version=loader_version(settings).version)


def installed_loader_version(loader: Loader, installed: str) -> LoaderVersion | None:
    """Return the installed version where it and what is beside it are proven or verified here."""
    found = _proven(loader, installed)
    # An unproven torch beside a proven torchdata can change the order, so both count.
    if found is not None and not unproven_beside(loader):
        return found
    return _verified(loader, installed)


def unproven_beside(loader: Loader) -> dict[str, str]:
    """Return the installed packages beside a library that are not of a proven version."""
    installed = {package: provided("installed_version")(package) for package in loader.beside}
    return {
        package: version
        for package, version in installed.items()
        if version is not None and not proven_as(loader.beside[package], version)
    }


def _proven(loader: Loader, version: str) -> LoaderVersion | None:
    found = proven_as(loader.proven, version)
    return None if found is None else LoaderVersion(version=found)


def _verified(loader: Loader, version: str) -> LoaderVersion | None:
    found: VerifiedVersion | None = provided("verified_version")(loader.name, version)
    if found is None:
        return None
    said = (
        f"{loader.library} {found.version} is none of the versions that shardctl was made "
        f"for; shardctl verify found it equal here in {found.num_settings} settings, on "
        f"{found.date}"
    )
    return LoaderVersion(version=found.version, is_proven=False, warnings=(said,))


def _same_source(loader: Loader, version: str) -> LoaderVersion | None:
    """Return the proven version whose source of the order the installed one has, with a warning."""
    installed = provided("installed_version")(loader.library)
    if installed is None or not same_version(installed, version):
        return None
    unproven = unproven_beside(loader)
    if not _proven(loader, installed):
        unproven[loader.library] = installed
    known = {**loader.beside, loader.library: loader.proven}
    alike = {package: provided("same_source")(package) for package in unproven}
    if not all(like and proven_as(known[package], like) for package, like in alike.items()):
        return None
    warnings = tuple(
        f"{package} {unproven[package]} was not compared with its prediction; the source of its "
        f"order is that of {like}, so that order is predicted; `shardctl verify --loader "
        f"{loader.name}` compares it, with its compiled parts"
        for package, like in alike.items()
    )
    # Rules know versions, so the order is planned, and kept in files, as that of the proven one.
    version = alike.get(loader.library) or installed
    return LoaderVersion(version=version, is_proven=False, warnings=warnings)


def _refuse(loader: Loader, version: str, *, is_installed: bool = False) -> LoaderVersion:
    how = "is installed" if is_installed else "is named"
    there, known = f"{loader.library} {version} {how}", choices(loader.proven)
    if is_installed and _proven(loader, version):
        package, other = next(iter(unproven_beside(loader).items()))
        there += f" with {package} {other}"
        known = f"{package} {choices(loader.beside[package])}"
    raise refused(
        "{}, and its order is known for {}: {loader_version=} predicts that one; shardctl verify "
        "with {loader=} compares the installed one with it",
        *(there, known),
        loader_version=proven_as(loader.proven, version) or loader.proven[-1],
        loader=loader.name,
    )
