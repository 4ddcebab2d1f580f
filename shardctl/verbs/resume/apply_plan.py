"""A plan applied to the dataset as it is now: refused if that changed, else its files are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from shardctl.base.arrays import Int64s, groups_of
from shardctl.base.text import choices, counted, printable, quoted
from shardctl.dataset import identity
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.folders import layout_tells_order, with_folders
from shardctl.errors import DatasetError
from shardctl.order.resolved_spec import format_warnings, refuse_open_splits, refuse_unreadable
from shardctl.order.sources import resolved_reading
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.short_form import stages_of
from shardctl.spec.reads import NamedFiles, Reads
from shardctl.spec.subsplit import Resolved
from shardctl.stages.pipelines import readers_of


def applied(plan: ResumePlan, dataset: Dataset, *, allow_version: bool = False) -> ResumePlan:
    """Return a plan, from a file as a rule, with its files found in the dataset as it is now.

    A plan that was made or found in this very dataset is returned as it is. With `allow_version` it
    may be one of another version or config whose files have the same names and lengths; the plan
    that is returned is then one for the dataset as it is now.

    Raises:
        DatasetError: the dataset is another one or has changed, and the text says how; or an
            instruction names a file that is not there or not read, or examples beyond it.
        UnpredictableOrderError: the plan is of a nondeterministic order.
    """
    given = dataset
    # Where readers name several datasets, these are read as one.
    if any(read.data is not None for read in readers_of(stages_of(plan.settings))):
        dataset = resolved_reading(dataset, plan.spec, plan.settings).dataset
    # `is not`: an identity that comes from this very dataset needs no comparison.
    if plan.dataset is not dataset.identity:
        check_same_dataset(plan.dataset, dataset, "plan", allow_version=allow_version)
    if all(reads.files is dataset for reads in _all_reads(plan)):
        _checked_spec(plan, given)
        return plan
    if allow_version and plan.dataset.title != dataset.title:
        # The result is a plan for the dataset as it is now.
        plan = replace(plan, dataset=dataset.identity)
    found = replace(
        plan,
        given=given,
        instructions=_found(plan.instructions, dataset),
        hosts=tuple(
            replace(host, instructions=_found(host.instructions, dataset)) for host in plan.hosts
        ),
        shared=plan.shared and replace(plan.shared, reads=_found(plan.shared.reads, dataset)),
    )
    resolved = _checked_spec(found, given)
    said = format_warnings(dataset, resolved.ranges) if plan.settings.reader.on_tf_data else ()
    return replace(found, warnings=tuple(dict.fromkeys((*found.warnings, *said))))


def _checked_spec(plan: ResumePlan, dataset: Dataset) -> Resolved:
    """Return the spec of a plan, checked: it has an order, and instructions read splits of it."""
    if plan.settings.reader.on_tf_data:
        refuse_unreadable(dataset)
    resolved = resolved_reading(dataset, plan.spec, plan.settings)
    if not plan.from_seen:  # which counts from the start of no order
        refuse_open_splits(resolved)
    dataset = resolved.dataset
    names = [split.name for split in dataset.splits]
    read = {names.index(piece.split.name) for piece in resolved.ranges}
    for reads in _all_reads(plan):
        for index, rows in groups_of(reads.split):
            if index not in read:
                which = quoted(names[index]) if 0 <= index < len(names) else f"split {index}"
                raise DatasetError(
                    f"the plan reads files of {which}, which its spec {quoted(plan.spec)} does not"
                )
            _check_shards(reads.shard[rows], dataset.splits[index])
        _check_fit(reads)
    return resolved


def _check_fit(reads: Reads) -> None:
    """Check that the examples that rows read are in their files."""
    skip, take, lengths = reads.skip, reads.take, reads.examples_in_shard
    wrong = np.flatnonzero((skip < 0) | (take < 0) | (take > lengths - skip))
    if wrong.size:
        row = int(wrong[0])
        raise DatasetError(
            f"the plan skips {skip[row]} and takes {take[row]} of {quoted(reads.filename(row))}, "
            f"which has {lengths[row]} examples"
        )


def _check_shards(shard: Int64s, split: Split) -> None:
    outside = shard[(shard < 0) | (shard >= split.num_shards)]
    if outside.size:
        raise DatasetError(
            f"the plan reads shard {outside[0]} of {quoted(split.name)}, which has "
            f"{split.num_shards}"
        )


def _all_reads(plan: ResumePlan) -> Iterator[Reads]:
    yield plan.instructions
    if plan.shared is not None:
        yield plan.shared.reads
    yield from (host.instructions for host in plan.hosts)


def _found(reads: Reads, dataset: Dataset) -> Reads:
    """Return the same reads of a dataset whose layout is the one that the plan was made for."""
    files = reads.files
    if not isinstance(files, NamedFiles):
        if files.fingerprint != dataset.fingerprint:
            raise DatasetError(f"the plan's files are not those of {dataset.title}")
        return replace(reads, files=dataset)
    # `split` counts in the list of splits at the head of the plan's file.
    index_of = {split.name: index for index, split in enumerate(dataset.splits)}
    indices = np.array([index_of.get(name, -1) for name in reads.split_names], np.int64)
    split = indices[reads.split]
    shard = np.empty(len(reads), np.int64)
    for index, here in groups_of(split):
        one = dataset.splits[index]
        # A plan file lists shards by name or by number.
        if files.shards is None:
            shard[here] = _shards_by_name(files.names_at(reads.shard[here]), one)
        else:
            shard[here] = files.shards[reads.shard[here]]
        _check_lengths(reads, here, shard[here], one)
    return replace(reads, files=dataset, split=split, shard=shard)


def _shards_by_name(names: list[str], split: Split) -> list[int]:
    places = {name: shard for shard, name in enumerate(split.filenames)}
    try:
        return [places[name] for name in names]
    except KeyError as error:
        raise DatasetError(
            f"the plan reads {quoted(error.args[0])}, which is not a file of {quoted(split.name)}"
        ) from None


def _check_lengths(reads: Reads, here: Int64s, shard: Int64s, split: Split) -> None:
    # First whether the shards exist: their lengths are looked up next.
    _check_shards(shard, split)
    lengths = split.lengths64()[shard]
    # Same names with other lengths mean other contents.
    wrong = np.flatnonzero(lengths != reads.examples_in_shard[here])
    if wrong.size:
        row = int(here[wrong[0]])
        raise DatasetError(
            f"the plan says {reads.examples_in_shard[row]} examples of "
            f"{quoted(reads.filename(row))}, which has {lengths[wrong[0]]}"
        )


# The dataset that a plan or a position was made for beside that of today: what is another.

_MOST_CHANGES = 9  # that a message names
_OF_VERSION = ("config", "version", "folder_titles")
_CALLED = {
    "ordered": "ordered flag (disable_shuffling)",
    "splits": "split",
    "template": "file name template of",
    "folder_titles": "list of folders",
}


def check_same_dataset(
    then: identity.DatasetIdentity,
    dataset: Dataset,
    what: Literal["plan", "position"],
    *,
    allow_version: bool = False,
) -> None:
    """Refuse another dataset than that of a plan or a position; where it lies does not matter.

    What only one of the two knows is not compared, except the order of the folders: where it is not
    known and does not show in the layout either, the dataset is refused as well. `allow_version`
    takes another version or config of the same layout.

    Raises:
        DatasetError: it is another; the text says everything in which, then and now.
    """
    dataset = with_folders(dataset)
    now = dataset.identity
    # What is not known on one side is not a difference.
    found = [d for d in identity.differences(then, now) if _counts(d, then, dataset)]
    if allow_version:
        found = [d for d in found if d.field not in _OF_VERSION]
    if not found:
        return
    changes = "; ".join(what_changed(found))
    text = f"the {what} was made for another state of {then.title}: {changes}"
    # If nothing but the version differs, the user may accept it.
    if all(d.field in _OF_VERSION for d in found):
        text = f"{text}; --allow-version accepts it"
    elif any(_is_unknown(d) for d in found):
        text = f"{text}; if the order is the same, resume from its count, --consumed N"
    raise DatasetError(text)


def _counts(found: identity.Difference, then: identity.DatasetIdentity, dataset: Dataset) -> bool:
    if found.field == "data_dir":
        return False
    if found.field == "version":
        return None not in (found.then, found.now)
    if found.field == "config" and None in (found.then, found.now):
        return None not in (then.version, dataset.version)  # else nothing says that it has none
    if found.field == "folders" and not then.folders and found.split is not None:
        # It does not say them; to read one folder twice has one order.
        paths = {folder.path for folder in found.now}
        twice = len(paths) == 1 and None not in paths
        known = layout_tells_order(dataset.split(found.split))
        return not (twice or known)
    return True


def _is_unknown(found: identity.Difference) -> bool:
    return found.field == "folders" and (
        not (found.then and found.now) or identity.folder_order(found.then, found.now) == "unknown"
    )


def what_changed(found: Sequence[identity.Difference]) -> list[str]:
    """Return in words in what two datasets differ, then and now.

    >>> train = identity.SplitSize(name="train", num_examples=60000, num_shards=1)
    >>> grown = identity.SplitSize(name="train", num_examples=60000, num_shards=2)
    >>> what_changed([identity.Difference(field="splits", split="train", then=train, now=grown)])
    ['its split train was 60,000 examples in 1 shard, now 60,000 examples in 2 shards']
    """
    # A new name or format changes every file name, which is then not reported once more.
    renamed = any(d.field in ("name", "file_format") for d in found)  # parts of the names
    sizes = any(d.field == "splits" for d in found)
    changes = []
    for d in found:
        if d.field == "folders":
            if not (_is_unknown(d) and sizes):  # their files changed
                changes.append(identity.order_in_words(d.then, d.now))
        elif d.field != "fingerprint" and not (d.field == "template" and renamed):
            what = _CALLED.get(d.field, d.field.replace("_", " "))
            if d.field == "splits" and d.split is None:
                what = "order of splits"
            elif d.split is not None:
                what = f"{what} {printable(d.split)}"
            changes.append(f"its {what} was {_value(d.then)}, now {_value(d.now)}")
    changes = list(dict.fromkeys(changes))[:_MOST_CHANGES]
    # Fingerprints differ while all totals agree.
    return changes or ["the lengths or names of its files changed, the totals did not"]


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, identity.SplitSize):
        examples = counted(value.num_examples, "example")
        return f"{examples} in {counted(value.num_shards, 'shard')}"
    return choices(value, 8) if isinstance(value, tuple) else printable(str(value), 200)
