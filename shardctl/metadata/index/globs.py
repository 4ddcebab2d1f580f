"""Globs, ranges in braces and `prefix@N`: which names of files a text means.

A glob means what it means in `tf.io.gfile.glob` (TensorFlow's platform/file_system_helper.cc, which
asks the C library's fnmatch for each part of a path): `*`, `?`, `[a-z]`, `[!a]`, `[^a]`, classes
such as `[[:digit:]]`, and a backslash that takes the meaning from what follows. TensorFlow reads
`**` as `*`; here a part that is `**` alone stands for any number of folders, as in bash and zsh.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise

from shardctl.base.text import quoted
from shardctl.errors import UsageError

ANY_FOLDERS = "**"
_MAGIC = re.compile(r"[*?\[\\]")
_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "xdigit": "0-9a-fA-F",
    "space": r"\s",
    "punct": r"!-/:-@\[-`{-~",
}
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")
_SHARDED = re.compile(r"(?P<prefix>.*)@(?P<count>[1-9]\d{0,17}|\*)(?P<suffix>[^@]*)", re.DOTALL)
MOST_EXPANDED = 10_000_000  # paths that braces may stand for


def is_glob(text: str) -> bool:
    """Return whether a text has characters that mean something in a glob.

    >>> is_glob("train-*"), is_glob("train-00000"), is_glob("a[1]")
    (True, False, True)
    """
    return _MAGIC.search(text) is not None


@lru_cache(maxsize=1024)
def glob_regex(glob: str) -> re.Pattern[str]:
    """Return the regular expression of one part of a glob, a name without slashes.

    >>> bool(glob_regex("train-[!0]?.tar").fullmatch("train-10.tar"))
    True
    >>> bool(glob_regex("*").fullmatch("a/b")), bool(glob_regex("[ab").fullmatch("[ab"))
    (False, True)
    """
    return re.compile(_translated(glob), re.DOTALL)


def path_regex(glob: str) -> re.Pattern[str]:
    """Return the regular expression of a glob of whole paths, or of their last parts.

    >>> bool(path_regex("data/**/*.tar").fullmatch("data/a/b/x.tar"))
    True
    >>> bool(path_regex("data/**/*.tar").fullmatch("data/x.tar"))
    True
    """
    pieces: list[str] = []
    parts = glob.split("/")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == ANY_FOLDERS:
            pieces.append(".*" if last else "(?:[^/]+/)*")
        else:
            pieces.append(_translated(part) + ("" if last else "/"))
    return re.compile("".join(pieces), re.DOTALL)


def _translated(glob: str) -> str:
    pieces: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            pieces.append("[^/]*" if not pieces or pieces[-1] != "[^/]*" else "")
        elif char == "?":
            pieces.append("[^/]")
        elif char == "[" and (found := _bracket(glob, at)) is not None:
            piece, at = found
            pieces.append(piece)
        elif char == "\\" and at < len(glob):
            pieces.append(re.escape(glob[at]))
            at += 1
        else:
            pieces.append(re.escape(char))
    return "".join(pieces)


_IN_BRACKET = re.compile(
    rf"\[:(?P<named>{'|'.join(_CLASSES)}):\]"
    r"|(?P<first>\\[^/]|[^/\\])-(?P<last>\\[^/]|[^\]/])|(?P<char>\\[^/]|[^/])",
    re.DOTALL,
)


def _bracket(glob: str, at: int) -> tuple[str, int] | None:
    """Return the expression of a bracket whose inside begins at `at`, and where it ends.

    None where it has no end: the bracket then stands for itself.
    """
    others = glob[at : at + 1] in ("!", "^")
    begin = at = at + others
    inside = ""
    while found := _IN_BRACKET.match(glob, at):
        if glob[at] == "]" and at > begin:
            if not inside:  # ranges that run backwards: no character is in them
                return ("[^/]" if others else r"(?!)"), at + 1
            return f"(?!/)[{'^' if others else ''}{inside}]", at + 1
        at = found.end()
        if found["named"]:
            inside += _CLASSES[found["named"]]
        elif found["char"]:
            inside += re.escape(found["char"][-1])
        elif (first := found["first"][-1]) <= (last := found["last"][-1]):
            inside += f"{re.escape(first)}-{re.escape(last)}"
    return None


def expanded(text: str) -> Iterator[str]:
    """Yield what braces in a text stand for: `{000..146}` and `{a,b}`, as in bash and WebDataset.

    >>> list(expanded("train-{08..10}.tar")), list(expanded("{a,b}{1..2}"))
    (['train-08.tar', 'train-09.tar', 'train-10.tar'], ['a1', 'a2', 'b1', 'b2'])
    >>> list(expanded("a{b}c{")), list(expanded("{{a,b}c}"))
    (['a{b}c{'], ['{ac}', '{bc}'])

    Raises:
        UsageError: a range of more than ten million numbers.
    """
    found = _braces(text)
    if found is None:
        yield text
        return
    start, stop, options = found
    for option in options:
        for inner in expanded(option):
            for rest in expanded(text[stop:]):
                yield text[:start] + inner + rest


def _braces(text: str) -> tuple[int, int, Iterator[str]] | None:
    """Return where the first braces that stand for several texts begin and end, and these."""
    for start, char in enumerate(text):
        if char != "{":
            continue
        depth, commas = 0, [start]
        for at in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            if text[at] == "," and depth == 1:
                commas.append(at)
            if depth == 0:
                inside = text[start + 1 : at]
                if numbers := _RANGE.fullmatch(inside):
                    return start, at + 1, _numbers(numbers, text)
                if len(commas) > 1:
                    cuts = [*commas, at]
                    pairs = pairwise(cuts)
                    return start, at + 1, iter([text[a + 1 : b] for a, b in pairs])
                break
    return None


def _numbers(found: re.Match[str], text: str) -> Iterator[str]:
    first, last, step = int(found[1]), int(found[2]), abs(int(found[3] or 1)) or 1
    if abs(last - first) // step >= MOST_EXPANDED:
        raise UsageError(f"{quoted(text, 200)} stands for more than {MOST_EXPANDED:,} paths")
    padded = any(re.match(r"-?0\d", end) for end in (found[1], found[2]))
    width = max(len(found[1]), len(found[2])) if padded else 0
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return (f"{number:0{width}d}" for number in numbers)


def sharded_regex(name: str) -> tuple[re.Pattern[str], int | None] | None:
    """Return the expression of the names that `prefix@N` means, and N; None where it says no such.

    `prefix@*` means any number of shards. The groups are `index` and `total`, and what follows `@N`
    follows the numbers too. Where nothing does, an ending such as `.parquet` may follow.

    >>> found, total = sharded_regex("mnist-train.tfrecord@10")
    >>> found.fullmatch("mnist-train.tfrecord-00003-of-00010").groupdict(), total
    ({'index': '00003', 'total': '00010'}, 10)
    >>> bool(sharded_regex("data@*.parquet")[0].fullmatch("data-00003-of-00010.parquet"))
    True
    """
    found = _SHARDED.fullmatch(name)
    if found is None:
        return None
    prefix, suffix = found["prefix"], found["suffix"]
    divided = "" if prefix.endswith(("-", "_", ".", "*")) or not prefix else "[-_.]"
    ending = _translated(suffix) if suffix else r"(?:\.[^/]*)?"
    text = rf"{_translated(prefix)}{divided}(?P<index>[0-9]+)[-_]of[-_](?P<total>[0-9]+){ending}"
    count = None if found["count"] == "*" else int(found["count"])
    return re.compile(text, re.DOTALL), count


def name_matcher(name: str) -> Callable[[str], bool] | None:
    """Return whether a name is one that a glob or `prefix@N` means; None of a plain name."""
    sharded = sharded_regex(name)
    if sharded is not None:
        return shard_matcher(*sharded)
    if is_glob(name):
        regex = glob_regex("*" if name == ANY_FOLDERS else name)
        return lambda other: regex.fullmatch(other) is not None
    return None


def shard_matcher(
    regex: re.Pattern[str], count: int | None, start: int = 0
) -> Callable[[str], bool]:
    """Return whether a text, from a place on, is that of one of `count` shards."""

    def is_shard(text: str) -> bool:
        found = regex.fullmatch(text, start)
        return found is not None and (count is None or int(found["total"]) == count)

    return is_shard
