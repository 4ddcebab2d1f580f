"""Runs a real loader over indices and compares what it yields with the predicted order."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.install import to_install
from shardctl.base.phrase import refused
from shardctl.base.progress import Progress, Watch
from shardctl.base.text import counted
from shardctl.dataset.dataset import Dataset, DatasetLike, Split, as_dataset
from shardctl.errors import MissingDependencyError, UnpredictableOrderError, UsageError
from shardctl.live.process import GaveUpError, LoaderProcess, Pieces
from shardctl.loaders.loader import Loader, VerifiedVersion, same_version
from shardctl.loaders.loader_sequence import Batches
from shardctl.metadata import loader_versions
from shardctl.order.loader_order import LoaderOrder, LoaderVersion, installed_loader_version
from shardctl.order.plan_order import PlannedOrder, order_of_version
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings import read_settings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import resolve_subsplit
from shardctl.verbs.resume.proof import prove
from shardctl.verbs.verify.answer import (
    BUDGETS,
    FirstDifference,
    Source,
    Take,
    Verification,
    Window,
    check_not_nothing,
    check_take,
    taken,
)
from shardctl.verbs.verify.verify_files import check_files_read

NUM_SETTINGS = 100  # at random, in which an unknown version has to agree
_PER_SECOND = 20_000  # examples, of the slowest library
_READ: Source = "index ranges"


@checked
def verify_loader(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: read_settings.SettingsLike | None = None,
    *,
    take: Take = None,
    watch: Watch | None = None,
) -> Verification:
    """Run the loader that settings name, as it is installed, and compare it with the prediction.

    It runs over as many indices as there are examples; the files are counted and checked beside
    it. Of a version that is not proven random settings are compared besides. Where all of them are
    equal that is kept, and the version is predicted from then on.

    Args:
        dataset, spec, settings: as for `shardctl.verify`; `loader` names the loader.
        take: how many examples are compared, from the first; -1 or "all" for all.
        watch: is called as the work proceeds.

    Raises:
        UsageError: another version is asked for than the installed one; or as for `simulate`.
        MissingDependencyError: the library is not installed.
    """
    dataset, settings = as_dataset(dataset), read_settings.as_settings(settings)
    loader, take = settings.reader, "all" if take == -1 else take
    version = version_here(loader, settings)
    # The version that is installed, proven or not: it is what is compared here.
    planned = order_of_version(dataset, spec, settings, version)
    check_not_nothing(planned.resolved, planned.order.num_examples, settings.host)
    check_take(take)
    with LoaderProcess(loader) as process:
        order = planned.order
        assert isinstance(order, LoaderOrder)
        note = f"{loader.title} runs over indices of the same number, not the files"
        found = compared(planned, process.pieces(order.config), take, watch, note)
        # The order asked for is all, if the version is proven; else random settings are compared
        # too.
        if version.is_proven:
            return found
        return _with_version(found, loader, version.version, process, watch)


def verify_loader_plan(
    dataset: Dataset, plan: ResumePlan, *, take: Take = None, watch: Watch | None = None
) -> Verification:
    """Run the loader of a plan, and compare what it yields with what the plan says is left.

    It reads from its first example on, `take` of those that are left. That the calls and the
    instructions of the plan are the rest of that order is proved beside it.

    Raises:
        UsageError, MissingDependencyError: as for `verify_loader`; a plan without an order.
    """
    # Without a stop the plan has no order, only instructions.
    if plan.stop is None:
        raise UsageError(
            "verify reads no plan of a loader from a log or for other hosts: it has no order; "
            "shardctl resume --plan FILE --prove counts its examples"
        )
    proof = prove(dataset, plan)
    # The loader starts at its first example, so what was consumed comes first.
    if take not in ("all", -1):
        take = plan.consumed + (BUDGETS["files"] if take is None else int(take))
    found = verify_loader(dataset, plan.spec, plan.settings, take=take, watch=watch)
    rest = f"lost {proof.lost:,}, repeated {proof.repeated:,}, moved {proof.moved or 0:,}"
    wrong = () if proof.holds or proof.broken else (f"the plan does not read the rest: {rest}",)
    return replace(found, broken=proof.broken, unequal=(*found.unequal, *wrong))


def version_here(loader: Loader, settings: read_settings.ReadSettings) -> LoaderVersion:
    """Return the installed version of the library of a loader, whether or not it is proven.

    Raises:
        MissingDependencyError: it is not installed.
        UsageError: another version is asked for.
    """
    installed, named = loader_versions.installed_version(loader.library), settings.loader_version
    if installed is None:
        raise MissingDependencyError(
            f"{loader.library} is not installed, and verify --loader {loader.name} runs it; "
            f"install it with: {to_install(loader.library)}"
        )
    # `5.1` and `5.1.0+cpu` are one version.
    if named is not None and not same_version(named, installed):
        raise refused(
            "{loader_version=}: installed is {} {}, and verify runs what is installed; without "
            "{loader_version} it compares that one",
            loader.library,
            installed,
            loader_version=named,
        )
    known = installed_loader_version(loader, installed)
    return known or LoaderVersion(version=installed, is_proven=False)


def compared(
    planned: PlannedOrder, pieces: Pieces, take: Take, watch: Watch | None, *notes: str
) -> Verification:
    """Compare what a loader yields with an order, from its first example.

    Notes say how that was found out; they are made when all was read.
    """
    order = planned.order
    assert isinstance(order, LoaderOrder)
    loader, total = order.loader, None if order.is_endless else order.num_examples
    checks = check_files_read(order.reads, watch)
    # What has no end has no "all"; the default applies.
    take = None if take == "all" and total is None else take
    size = taken(take, _READ, order.num_examples)
    progress = Progress("examples", size, watch=watch, per_second=_PER_SECOND)
    difference = first_difference(order, pieces, size, progress=progress)
    if total is None or size < total:
        all_of_them = "" if total is None else f" of {total:,}"
        end = "" if total is None else "; --take -1 reads them all"
        notes = (*notes, f"read: the first {size:,}{all_of_them} examples{end}")
    return Verification(
        dataset=order.dataset,
        spec=planned.spec,
        pipeline=read_settings.settings_in_force(order.settings, ordered=order.dataset.ordered),
        num_examples=total,
        read=_READ,
        windows=(Window(start=0, stop=size, read=_READ),),
        first_difference=difference,
        num_files=checks.num_files,
        files=checks.findings,
        versions={loader.library: order.version, **loader_versions.beside_of(loader.name)},
        notes=(*checks.notes, *notes),
        warnings=planned.warnings,
        assumptions=planned.assumptions,
    )


def first_difference(
    order: LoaderOrder, pieces: Pieces, take: int, *, progress: Progress | None = None
) -> FirstDifference | None:
    """Return where a loader first differs from an order in its first `take` positions, else None.

    Batches are compared with their sizes. Of an order that is compared to its end, the loader has
    to end there, too. In the end the pieces are closed, and with them what hands them out. Where a
    loader gives up, that is the difference, with what it says.
    """
    sequence, total = order.sequence, order.num_examples
    whole, wanted = take >= total, min(take, total)
    position = step = 0

    # Indices (int64) are turned into ids for the answer; a position past the end has none.
    def differs(at: int, found: int | None = None, reason: str | None = None) -> FirstDifference:
        expected = int(sequence.indices_at(np.array([at]))[0]) if at < total else None
        (expected_id, expected_name), (found_id, found_name) = (
            _names(order, index) for index in (expected, found)
        )
        return FirstDifference(
            position=at,
            expected=expected_id,
            found=found_id,
            expected_tfds_id=expected_name,
            found_tfds_id=found_name,
            read=_READ,
            reason=reason,
        )

    try:
        with closing(pieces):
            for sizes, indices in pieces:
                start, stop = position, position + len(indices)
                # Predicted indices for the positions of this piece, up to what is compared.
                expected = sequence.indices_at(np.arange(start, min(stop, wanted)))
                same = expected == indices[: len(expected)]
                # What comes behind the end of the whole differs, too.
                places = [start + int(at) for at in np.flatnonzero(~same)[:1]]
                places += [total] * (whole and stop > total)
                at, reason = min(places, default=None), None
                # A batch of the wrong size counts if it ends before the first wrong example, or
                # there.
                wrong = _wrong_size(sequence.batches, step, sizes, total if whole else take)
                if wrong is not None and (at is None or wrong[0] <= at):
                    at, reason = wrong
                if progress is not None:
                    progress.advance(min(stop, take) - start)
                if at is not None:
                    there = at - start
                    found = int(indices[there]) if there < len(indices) else None
                    return differs(at, found, reason)
                position, step = stop, step + len(sizes)
                # Not to the end: enough was compared, whatever follows.
                if not whole and position >= take:
                    return None
    except GaveUpError as error:
        return differs(position, reason=str(error))
    # The loader ended: too early, unless all that was wanted had come.
    return None if position >= wanted else differs(position)


def _wrong_size(
    batches: Batches | None, step: int, sizes: list[int], stop: int
) -> tuple[int, str] | None:
    """Return where the first batch of another size than predicted ends, and what is said.

    The first of `sizes` is that of batch `step`; those that begin at `stop` or behind do not count.
    """
    for number, size in enumerate(sizes, step) if batches is not None else ():
        if batches is None or number >= batches.num_batches or batches.bounds(number)[0] >= stop:
            return None
        start, end = batches.bounds(number)
        if end - start != size:
            said = f"batch {number:,} has {counted(size, 'example')}, and {end - start:,}"
            return start + min(size, end - start), f"{said} were predicted"
    return None


def _names(order: LoaderOrder, index: int | None) -> tuple[Any, str | None]:
    if index is None:
        return None, None
    # The loader yields numbers outside of what it was given.
    if not 0 <= index < order.config.num_examples:
        return "another record", "another record"
    codes = order.codes_of(np.array([index]))
    has_files = any(split.files for split in order.dataset.splits)
    name = order.codes.tfds_ids(codes.tolist())[0] if has_files else None
    return order.codes.ids(codes)[0], name


def _with_version(
    found: Verification, loader: Loader, version: str, process: LoaderProcess, watch: Watch | None
) -> Verification:
    """Compare random settings with a version that is not proven; keep it if all are equal."""
    wrong = _wrong_setting(loader, version, process, watch)
    if wrong or found.unequal or found.first_difference is not None:
        loader_versions.forget_verified(loader.name, version)
        return replace(found, unequal=(*found.unequal, wrong) if wrong else found.unequal)
    failed = loader_versions.keep_verified(
        VerifiedVersion(
            loader=loader.name,
            version=version,
            rule=loader.rule_version,
            num_settings=NUM_SETTINGS,
            date=time.strftime("%Y-%m-%d"),
            beside=loader_versions.beside_of(loader.name),
        )
    )
    said = (
        f"{loader.library} {version} is equal in {counted(NUM_SETTINGS, 'random setting')} as well"
    )
    kept = "; from now on its order is predicted here, with a warning"
    said += kept if failed is None else f", and that could not be kept: {failed}"
    return replace(found, notes=(*found.notes, said))


def _wrong_setting(
    loader: Loader, version: str, process: LoaderProcess, watch: Watch | None
) -> str | None:
    """Return the first of some random settings whose real order is another one, in words."""
    progress = Progress("settings", NUM_SETTINGS, watch=watch, per_second=10)
    # A fixed seed: two machines compare the same settings.
    random = Random(0)  # noqa: S311  # nothing to guess
    with closing(random_orders(loader, version, random)) as orders:
        for order in islice(orders, NUM_SETTINGS):
            pieces = process.pieces(order.config)
            try:
                found = first_difference(order, pieces, order.num_examples)
            # The rule takes settings that the library refuses; that is a difference, too.
            except UsageError as refusal:
                return f"{order.settings!r}: {refusal}"
            progress.advance(1)
            if found is not None:
                return _said_of(order, found)
    return None


def _said_of(order: LoaderOrder, found: FirstDifference) -> str:
    """Return under which settings an order differs, and where."""
    lengths = ", ".join(map(str, order.config.lengths.tolist()))
    there = found.reason or f"example {found.found}"
    return (
        f"{order.settings!r} over shards of {lengths} examples: at position {found.position:,} "
        f"example {found.expected} was predicted, and it comes to {there}"
    )


# Settings of a loader at random, of what it takes: they tell whether a version is the same.

# Sizes at which rules have edges: nothing to mix, 16 bits of a cipher, many more than a buffer.
_SIZES = (1, 2, 3, 5, 7, 16, 50, 97, 100, 256, 500, 999, 65_536, 65_537, 70_001)
_SMALL = 12  # how many of the sizes are usual
_TRIES = 2000  # settings in a row that are refused


def random_orders(
    loader: Loader, version: str, random: Random, *, every_workers: int = 20
) -> Generator[LoaderOrder]:
    """Yield orders of small made-up datasets under random settings, without end.

    Settings that the rule refuses are left out. Processes cost seconds, so one in `every_workers`
    orders has some.
    """
    drawn = refused = 0
    while True:
        # Settings at random are often invalid; those are drawn again, up to a limit.
        dataset = _dataset(random)
        try:
            settings = read_settings.ReadSettings(
                loader=loader.name,
                loader_version=version,
                **_values(loader, random, workers=drawn % every_workers == every_workers - 1),
            )
            ranges = resolve_subsplit("train", dataset).ranges
            order = LoaderOrder(dataset, ranges, settings)
        except (UsageError, UnpredictableOrderError):
            refused += 1
            if refused > _TRIES:
                raise
            continue
        drawn, refused = drawn + 1, 0
        yield order


def _dataset(random: Random) -> Dataset:
    size = random.choice(_SIZES if random.random() < 0.1 else _SIZES[:_SMALL])
    num_shards = random.choice((1, 1, 2, 3, 5, 8, 13, 24))
    # Random cut points, sorted, give the lengths; shards without examples are dropped.
    cuts = sorted(random.randrange(size + 1) for _ in range(min(num_shards, size) - 1))
    lengths = tuple(b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True))
    split = Split(name="train", shard_lengths=tuple(length for length in lengths if length))
    return Dataset(name="random", splits=(split,))


def _values(loader: Loader, random: Random, *, workers: bool) -> dict[str, Any]:
    """Return values of the settings that a loader takes; half of them are left as they are."""
    # Half of the settings stay at their defaults, so that combinations differ in size.
    seeds = (0, 1, 42, random.randrange(1000), random.randrange(2**32))
    count = random.randrange(1, 6)
    choices: dict[str, Sequence[Any]] = {
        "shuffle": (True, True, False),
        **dict.fromkeys(("shuffle_seed", "global_seed", "buffer_seed"), seeds),
        "epochs": (2, 3),
        "pass_index": (1, 2, 5),
        "host": [Host(index=index, count=count) for index in range(count)],
        "host_by": ("even", "examples", "files"),
        "drop_shard_remainder": (True,),
        "batch": (1, 2, 3, 4, 7, 8, 16, 33),
        "buffer": (1, 2, 3, 5, 16, 64, 100, 5000),
        **dict.fromkeys(("streaming", "arrow"), (True, False)),
        "input_shards": (1, 2, 10),
    }
    values: dict[str, Any] = {
        name: random.choice(choices[name])
        for name in choices
        if name in loader.takes and random.random() < 0.5
    }
    if "batch" in values and "drop_remainder" in loader.takes and random.random() < 0.4:
        values["drop_remainder"] = True
    if workers and "workers" in loader.takes:
        values["workers"] = random.choice((1, 2, 3))
        if "persistent_workers" in loader.takes:
            values["persistent_workers"] = random.random() < 0.5
    return values
