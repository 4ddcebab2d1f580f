"""Splits as names say them; what they do not say for certain is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shardctl.core.phrase import phrase
from shardctl.core.text import choices, quoted
from shardctl.errors import DatasetError
from shardctl.readers.index.naming.shapes import MOST_SHAPES, shapes_of
from shardctl.readers.index.naming.shard_sets import ShardSet, sets_of
from shardctl.readers.index.naming.split_sets import Folders, SplitSets
from shardctl.readers.index.naming.split_words import (
    NamedSplit,
    named_split,
    speaks_of_several,
    split_in_place,
    split_word,
)

DEFAULT_SPLIT = "train"  # as Hugging Face calls files that name none
_FIRST = ("tr", "va", "de", "te")  # what names of splits begin with, in the order of answers


def splits_by_names(folders: Folders) -> list[SplitSets]:
    """Return the splits of files.

    Raises:
        DatasetError: files of several kinds and nothing that tells which split they are; two
            datasets, versions or formats.
    """
    shapes = shapes_of(folders.files)
    if shapes is None:
        raise DatasetError(
            phrase(
                "{} has more than {:,} kinds of names; say which split they are by {split}",
                _where(folders), MOST_SHAPES,
            )
        )  # fmt: skip
    sets = sets_of(shapes)
    named = [named_split(folders.below(found), found.text) for found in sets]
    if not any(named):
        (found,) = _joined(folders, sets)
        if speaks_of_several(folders.below(found), found.text):
            raise DatasetError(
                phrase(
                    "{}: names speak of several splits: {}; {}",
                    _where(folders), folders.said(sets), folders.way_out(sets),
                )
            )  # fmt: skip
        name = split_word(folders.root.rpartition("/")[2]) or DEFAULT_SPLIT
        return [SplitSets(name=name, sets=(found,))]
    rests = list(dict.fromkeys(one.rest for one in named if one is not None))
    splits: dict[str, list[tuple[ShardSet, NamedSplit]]] = {}
    unknown = []
    for found, spoken in zip(sets, named, strict=True):
        one = spoken or _alike(rests, folders.below(found), found.text)
        if one is None:
            unknown.append(found)
        else:
            splits.setdefault(one.split, []).append((found, one))
    if unknown:
        known = choices(_in_order(splits), 5)
        raise DatasetError(
            phrase(
                "{}: beside {} there are files of no split that the names tell: {}; {}",
                _where(folders), known, folders.said(unknown), folders.way_out(unknown),
            )
        )  # fmt: skip
    _check_one_dataset(folders, splits)
    return [
        SplitSets(
            name=name,
            sets=_joined(folders, [found for found, _ in splits[name]], name),
            named=splits[name][0][1],
        )
        for name in _in_order(splits)
    ]


def _in_order(splits: Iterable[str]) -> list[str]:
    """Return names of splits in the order of answers: train, validation, test, others."""
    begins = {name: name[:2].lower() for name in splits}
    places = {
        name: _FIRST.index(at) if at in _FIRST else len(_FIRST) for name, at in begins.items()
    }
    return sorted(places, key=lambda name: (places[name], name))


def _alike(rests: Sequence[str], folder: str, text: str) -> NamedSplit | None:
    """Return the split of a name that is like those that say theirs: `extra-0` beside `train-0`."""
    found = [
        NamedSplit(split=split, rest=rest)
        for rest in rests
        if (split := split_in_place(rest, folder, text)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _check_one_dataset(
    folders: Folders, splits: Mapping[str, list[tuple[ShardSet, NamedSplit]]]
) -> None:
    """Raise where TFDS's template names two datasets, or a dataset in two folders."""
    first: dict[tuple[str | None, str], ShardSet] = {}
    for members in splits.values():
        for found, named in members:
            if named.dataset is not None:
                first.setdefault((named.dataset, folders.below(found)), found)
    if len(first) > 1:
        datasets = list(dict.fromkeys(dataset for dataset, _ in first))
        what = "datasets" if len(datasets) > 1 else "folders of one dataset"
        several = datasets if len(datasets) > 1 else [folder for _, folder in first]
        raise DatasetError(
            phrase(
                "{} has files of {} {}: {}; give the files of one, or {}",
                _where(folders), len(first), what, choices(several, 6),
                folders.way_out(first.values()),
            )
        )  # fmt: skip


def _joined(
    folders: Folders, sets: Sequence[ShardSet], split: str | None = None
) -> tuple[ShardSet, ...]:
    """Return the one set that sets make up, or raise: files without numbers are one of a folder."""
    if len(sets) > 1 and (
        len({found.folder for found in sets}) > 1
        or any(found.numbers is not None for found in sets)
    ):
        which = "their names tell no splits" if split is None else f"all of split {quoted(split)}"
        raise DatasetError(
            phrase(
                "{} has {} kinds of files, {}: {}; {}",
                _where(folders), len(sets), which, folders.said(sets), folders.way_out(sets),
            )
        )  # fmt: skip
    whole, *others = sets
    for other in others:
        whole.join(other)
    return (whole,)


def _where(folders: Folders) -> str:
    return quoted(folders.root or "/", 200)
