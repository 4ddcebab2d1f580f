"""Record files that a script lists itself, as the reader that has the same order.

`list_files(pattern, shuffle, seed)` with `interleave(TFRecordDataset, cycle_length, block_length)`
behind it is what TFDS's reader is, over all files that match: these sorted by the bytes of their
paths, shuffled as a whole, then interleaved (tensorflow/python/data/ops/dataset_ops.py,
list_files). A file without examples is the one difference, and `readers` refuse it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from shardctl.core.stages.part import Source, Stage
from shardctl.core.stages.stages import Opaque, Read
from shardctl.errors import UsageError

_AUTO = ("auto", "AUTOTUNE", "tf.data.AUTOTUNE", "tf.data.experimental.AUTOTUNE")
_WORDS = {"true": True, "false": False, "null": None, "none": None}
_READERS = ("TFRecordDataset", "tf.data.TFRecordDataset")
_DEFAULT_BLOCK = 1  # tensorflow/python/data/ops/interleave_op.py, _interleave


class Written(str):
    """An argument as a script writes it: a literal, or code that nobody runs here."""


class _ComputedError(Exception):
    """An argument is code."""


@dataclass(frozen=True, kw_only=True)
class ListFiles:
    """`tf.data.Dataset.list_files(pattern, shuffle, seed)` before it is known what reads them."""

    name: ClassVar[str] = "list_files"
    pattern: str
    shuffle: bool
    seed: int | None


@dataclass(frozen=True, kw_only=True)
class Interleave:
    """`ds.interleave(TFRecordDataset, ..)`: what reads files that are listed right before it."""

    name: ClassVar[str] = "interleave"
    cycle: int | str | None
    block: int
    calls: int | str | None
    deterministic: bool | None


def listed_by(values: Mapping[str, Any]) -> ListFiles | None:
    """Return what `list_files` lists, None where its arguments are code.

    >>> listed_by({"pattern": Written("'data/*'"), "seed": Written("7")})
    ListFiles(pattern='data/*', shuffle=True, seed=7)
    >>> listed_by({"pattern": Written("pattern")})
    """
    try:
        known = {name: _known(value) for name, value in values.items()}
    except _ComputedError:
        return None
    pattern, shuffle, seed = (known.get(name) for name in ("pattern", "shuffle", "seed"))
    if pattern is None:
        return None
    if not isinstance(pattern, str) or not pattern:
        raise UsageError("a pattern of file names is needed, as 'data/train-*'")
    if not isinstance(shuffle, bool | None):
        raise UsageError("shuffle: true or false is needed")
    shuffles = shuffle is not False
    return ListFiles(pattern=pattern, shuffle=shuffles, seed=_whole("seed", seed))


def interleave_by(values: Mapping[str, Any]) -> Interleave | None:
    """Return how `interleave` reads files, None where a function or arguments are code."""
    try:
        given = dict(values)
        function = given.pop("map_func", None)
        if function is not None and str(function) not in _READERS:
            return None
        known = {name: _known(value) for name, value in given.items()}
    except _ComputedError:
        return None
    deterministic = known.get("deterministic")
    if not isinstance(deterministic, bool | None):
        raise UsageError("deterministic: true or false is needed")
    block = _whole("block_length", known.get("block_length"), least=1)
    return Interleave(
        cycle=_number("cycle_length", known.get("cycle_length")),
        block=_DEFAULT_BLOCK if block is None else block,
        calls=_number("num_parallel_calls", known.get("calls")),
        deterministic=deterministic,
    )


def records_by(values: Mapping[str, Any]) -> Read | None:
    """Return what `TFRecordDataset(files, num_parallel_reads=N)` reads, None where that is code.

    >>> records_by({"filenames": "data/*", "num_parallel_reads": 4}).settings[:2]
    (('cycle', 4), ('block', 1))
    """
    try:
        known = {name: _known(value) for name, value in values.items()}
    except _ComputedError:
        return None
    files, reads = known.get("filenames"), known.get("num_parallel_reads")
    if files is None:
        return None
    if not isinstance(files, str) or not files:
        raise UsageError("a file, or a pattern of file names, is needed, as 'data/train-*'")
    cycle = _number("num_parallel_reads", reads)
    if cycle == "auto":
        raise UsageError(
            "num_parallel_reads: AUTOTUNE is as many as the CPUs of the machine come to; a number "
            "is needed"
        )
    return _read(files, shuffle=False, seed=None, cycle=1 if cycle is None else cycle, block=1)


def joined(source: Any, stages: Iterable[Any]) -> tuple[Source, Any]:
    """Return a source and stages in which files that are listed and interleaved are one reader.

    What is listed for something else leaves the order open, and so does another interleave.

    Raises:
        UsageError: an interleave without a length of its cycle, or one that TensorFlow refuses.
    """
    rest: list[Stage | Interleave] = list(stages)
    if isinstance(source, ListFiles):
        first = rest[0] if rest else None
        if isinstance(first, Interleave):
            source = _interleaved(source, first)
            del rest[0]
        else:
            source = Opaque.known(source.name)
    others = [
        Opaque.known(stage.name) if isinstance(stage, Interleave) else stage for stage in rest
    ]
    return source, tuple(others)


def _interleaved(listed: ListFiles, interleave: Interleave) -> Read:
    cycle, calls = interleave.cycle, interleave.calls
    if cycle is None or isinstance(cycle, str):
        raise UsageError(
            "interleave: cycle_length is needed: without it the CPUs of the machine decide how "
            "many files are read in turn"
        )
    if isinstance(calls, int) and calls > cycle:
        raise UsageError(
            f"interleave: num_parallel_calls={calls} is more than cycle_length={cycle}, which "
            "TensorFlow refuses"
        )
    return _read(
        listed.pattern,
        shuffle=listed.shuffle,
        seed=listed.seed if listed.shuffle else None,
        cycle=cycle,
        block=interleave.block,
        # Without threads of its own an interleave takes no notice of it.
        deterministic=calls is None or interleave.deterministic is not False,
    )


def _read(
    pattern: str,
    *,
    shuffle: bool,
    seed: int | None,
    cycle: int | str,
    block: int,
    deterministic: bool = True,
) -> Read:
    settings: dict[str, object] = {"cycle": cycle, "block": block, "shuffle_files": shuffle}
    if seed is not None:
        settings["shuffle_seed"] = seed
    settings["deterministic"] = deterministic
    return Read(data=pattern, settings=tuple(settings.items()), listed=True)


def text_of_listed(read: Read) -> str:
    """Return a reader of files that are listed as a script writes it.

    >>> text_of_listed(records_by({"filenames": "data/*", "num_parallel_reads": 4}))
    "list_files('data/*', shuffle=False) | interleave(cycle_length=4)"
    """
    own = dict(read.settings)
    shuffle = "" if own.get("shuffle_files") else ", shuffle=False"
    seed = f", seed={own['shuffle_seed']}" if "shuffle_seed" in own else ""
    pattern = str(read.data).replace("\\", "\\\\").replace("'", "\\'")
    block = own.get("block", _DEFAULT_BLOCK)
    said = [f"cycle_length={own['cycle']}"]
    if block != _DEFAULT_BLOCK:
        said.append(f"block_length={block}")
    if own.get("deterministic") is False:
        said += [f"num_parallel_calls={own['cycle']}", "deterministic=False"]
    return f"list_files('{pattern}'{shuffle}{seed}) | interleave({', '.join(said)})"


def _known(value: Any) -> Any:
    """Return what an argument is, or raise where it is code."""
    if not isinstance(value, Written):
        return "auto" if isinstance(value, str) and value in _AUTO else value
    text = str(value)
    if text in _AUTO:
        return "auto"
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise _ComputedError from None
    if not isinstance(found, str | int | float | None):
        raise _ComputedError
    return found


def _whole(name: str, value: Any, *, least: int | None = None) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is None or (whole and (least is None or value >= least)):
        return value  # type: ignore[no-any-return]
    raise UsageError(f"{name}: a whole number{'' if least is None else f' from {least}'} is needed")


def _number(name: str, value: Any) -> int | str | None:
    """Return a number from 1, or auto, which is -1 in tf.data."""
    if value == "auto" or (value == -1 and not isinstance(value, bool)):
        return "auto"
    return _whole(name, value, least=1)
