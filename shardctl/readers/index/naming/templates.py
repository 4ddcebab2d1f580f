"""The template of a set of files, where they follow one, as TFDS writes templates."""

from __future__ import annotations

from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.tfds_rules import MIN_SHARD_DIGITS
from shardctl.errors import DatasetError
from shardctl.readers.index.naming.shapes import NUMBER, RANDOM
from shardctl.readers.index.naming.shard_sets import ShardSet
from shardctl.readers.index.naming.split_words import SPLIT, NamedSplit


def template_of(
    found: ShardSet,
    folder: str,
    *,
    named: NamedSplit | None,
    dataset: str | None,
    split: str,
    file_format: str | None,
) -> str | None:
    """Return the template that gives the names of a set whose shards are all there.

    folder: below the root, with a slash at its end. `{DATASET}`, `{SPLIT}` and `{FILEFORMAT}` are
    put in where the names say just these. None where no template of TFDS gives these names: theirs
    have shards from 0 with at least five digits, as many in every name.
    """
    digits = max(MIN_SHARD_DIGITS, len(str(len(found))))
    if not (_is_whole(found) and found.widths == (digits, digits)):
        return None
    (text,) = found.texts
    ending = text[len(found.text) :]
    if named is None:
        whole = folder + text
    else:
        whole = named.rest + (text if named.rest.endswith("/") else ending)
    words = iter(found.random or ())
    whole = "".join(next(words, RANDOM) if char == RANDOM else char for char in whole)
    whole = whole.replace("{", "{{").replace("}", "}}")
    if file_format is not None and whole.count(f".{file_format}") == 1:
        whole = whole.replace(f".{file_format}", ".{FILEFORMAT}")
    if named is not None and named.dataset is not None and named.dataset == dataset:
        before, _, name = whole.rpartition("/")
        whole = f"{before}{'/' if before else ''}{{DATASET}}{name.removeprefix(dataset)}"
    if found.totals is not None:
        total = f"{found.totals[0]:0{found.total_widths[0]}d}"
        if len(total) == digits:
            whole = whole.replace(f"{NUMBER}-of-{NUMBER}", "{SHARD_X_OF_Y}")
        if NUMBER in whole:
            before, index, rest = whole.partition(NUMBER)
            whole = before + index + rest.replace(NUMBER, total)
    whole = whole.replace(NUMBER, "{SHARD_INDEX}").replace(SPLIT, "{SPLIT}")
    try:
        templated = ShardFiles.from_template(
            whole,
            dataset=dataset or "",
            split=split,
            file_format=file_format or "",
            num_shards=len(found),
        )
    except DatasetError:  # a path longer than the layout can say, or with control characters
        return None
    return whole if templated[0] == _first(found, folder, words=found.random or []) else None


def _is_whole(found: ShardSet) -> bool:
    """Return whether all shards are there, each once, with names of one kind."""
    numbers, totals = found.numbers, found.totals
    if numbers is None or found.unclear or len(found.texts) != 1:
        return False
    if (RANDOM in found.text and found.random is None) or len(set(numbers)) != len(found):
        return False
    if found.text.count(NUMBER) != (1 if totals is None else 2):
        return False
    if totals is not None and not (
        set(totals) == {len(found)} and found.total_widths[0] == found.total_widths[1]
    ):
        return False
    return min(numbers) == 0 and max(numbers) == len(found) - 1


def _first(found: ShardSet, folder: str, words: list[str]) -> str:
    """Return the name of shard 0."""
    (text,) = found.texts
    text = text.replace(NUMBER, f"{0:0{found.widths[0]}d}", 1)
    if found.totals is not None:
        text = text.replace(NUMBER, f"{found.totals[0]:0{found.total_widths[0]}d}", 1)
    left = iter(words)
    return folder + "".join(next(left) if char == RANDOM else char for char in text)
