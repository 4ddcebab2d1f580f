"""Record files that a script lists itself, as the reader that has the same order.

`list_files(pattern, shuffle, seed)` with `interleave(TFRecordDataset, cycle_length, block_length)`
behind it is what TFDS's reader is, over all files that match: these sorted by the bytes of their
paths, shuffled as a whole, then interleaved (tensorflow/python/data/ops/dataset_ops.py,
list_files). A file without examples is the one difference, and `readers` refuse it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any

from shardctl.errors import UsageError
from shardctl.stages import part as parts
from shardctl.stages.stages import Opaque, Read

_READERS = ("TFRecordDataset", "tf.data.TFRecordDataset")
_CALLS = "calls num_parallel_calls"
_DEFAULT_BLOCK = 1  # tensorflow/python/data/ops/interleave_op.py, _interleave


def _written(*parameters: str) -> tuple[parts.Parameter, ...]:
    """Return parameters that are literals or code, each by its names."""
    return tuple(parts.value(*names.split(), takes="written") for names in parameters)


class _Listing(parts.Part, is_call=False):
    """A call about files, of which code decides unless its arguments are literals."""

    takes_anything = True

    @classmethod
    def made(cls, values: dict[str, Any]) -> tuple[parts.Part, ...]:
        """Return the call, or what makes the order nondeterministic where code decides."""
        # Arguments that are literals, in Python's own values.
        known = {
            field.name: parts.WORDS.get(given, given) if isinstance(given, str) else given
            for field in fields(cls)
            if (given := values.get(field.name)) is not None
        }
        needed = {field.name for field in fields(cls) if field.default is MISSING}
        # Something that code computes could be anything, so nothing is assumed of it.
        if parts.CODE in values.values() or not needed <= known.keys():
            return (Opaque.known(cls.name),)
        return cls(**known).read()

    def read(self) -> tuple[parts.Part, ...]:
        """Return what it is to be joined with others."""
        return (self,)


class ListFiles(_Listing, parts.Source):
    """`tf.data.Dataset.list_files(pattern, shuffle, seed)` before it is known what reads them."""

    name = "list_files"
    parameters = _written("pattern file_pattern", "shuffle", "seed")
    pattern: parts.Word
    shuffle: bool = True
    seed: int | None = None


class Interleave(_Listing, parts.Stage):
    """`ds.interleave(TFRecordDataset, ..)`: what reads files that are listed right before it."""

    name = "interleave"
    parameters = _written("map_func", "cycle_length", "block_length", _CALLS, "deterministic")
    cycle_length: parts.Calls | None = None
    block_length: parts.PositiveCount = _DEFAULT_BLOCK
    calls: parts.Calls | None = None
    deterministic: bool | None = None

    @classmethod
    def made(cls, values: dict[str, Any]) -> tuple[parts.Part, ...]:
        """Return the call, or an opaque stage where a function or code decides."""
        if values.get("map_func") in (None, *_READERS):
            return super().made(values)
        return (Opaque.known(cls.name),)


class Records(_Listing, parts.Source):
    """`TFRecordDataset(files, num_parallel_reads=N)`, which lists and interleaves them itself."""

    name = "TFRecordDataset"
    parameters = _written("filenames", "compression_type", "buffer_size", "num_parallel_reads")
    filenames: parts.Word
    num_parallel_reads: parts.Calls = 1

    def read(self) -> tuple[parts.Part, ...]:
        """Return the reader that has its order."""
        cycle = self.num_parallel_reads
        if isinstance(cycle, str):
            raise UsageError(
                "num_parallel_reads: AUTOTUNE is as many as the CPUs of the machine come to; a "
                "number is needed"
            )
        return (_read(self.filenames, cycle=cycle, block=1, shuffle_files=False),)


def joined(source: Any, stages: Iterable[Any]) -> tuple[parts.Source, Any]:
    """Return a source and stages in which files that are listed and interleaved are one reader.

    Files listed for another purpose, and another interleave, make the order nondeterministic.

    Raises:
        UsageError: an interleave without a length of its cycle, or one that TensorFlow refuses.
    """
    rest: list[parts.Stage] = list(stages)
    if isinstance(source, ListFiles):
        # Right behind the list of files: anything between, even a shuffle, changes what is
        # interleaved.
        first = rest[0] if rest else None
        if isinstance(first, Interleave):
            source = _interleaved(source, first)
            del rest[0]
        else:
            source = Opaque.known(source.name)
    others = (Opaque.known(one.name) if isinstance(one, Interleave) else one for one in rest)
    return source, tuple(others)


def _interleaved(listed: ListFiles, interleave: Interleave) -> Read:
    cycle, calls = interleave.cycle_length, interleave.calls
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
    # An absent seed stays absent, so that a global seed or a refusal takes its place.
    seed = {"shuffle_seed": listed.seed} if listed.shuffle and listed.seed is not None else {}
    return _read(
        listed.pattern,
        cycle=cycle,
        block=interleave.block_length,
        shuffle_files=listed.shuffle,
        **seed,
        # An interleave without num_parallel_calls ignores `deterministic`.
        deterministic=calls is None or interleave.deterministic is not False,
    )


def _read(pattern: str, *, deterministic: bool = True, **settings: object) -> Read:
    settings["deterministic"] = deterministic
    return Read(data=pattern, settings=tuple(settings.items()), listed=True)


def text_of_listed(read: Read) -> str:
    """Return a reader of files that are listed as a script writes it.

    >>> (read,) = Records.made({"filenames": "data/*", "num_parallel_reads": 4})
    >>> text_of_listed(read)
    "list_files('data/*', shuffle=False) | interleave(cycle_length=4)"
    """
    own = dict(read.settings)
    shuffle = "" if own.get("shuffle_files") else ", shuffle=False"
    seed = f", seed={own['shuffle_seed']}" if "shuffle_seed" in own else ""
    pattern = str(read.data).replace("\\", "\\\\").replace("'", "\\'")
    said = [f"cycle_length={own['cycle']}"]
    if own["block"] != _DEFAULT_BLOCK:
        said.append(f"block_length={own['block']}")
    # `deterministic` counts only with threads; any number up to the cycle reads back as the same.
    if own.get("deterministic") is False:
        said += [f"num_parallel_calls={own['cycle']}", "deterministic=False"]
    return f"list_files('{pattern}'{shuffle}{seed}) | interleave({', '.join(said)})"
