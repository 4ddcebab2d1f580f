"""`inspect --scan`: what a stage that depends on data does to each example, found by one reading.

The examples are read once in the order of their files, through the pipeline's own maps, and its own
predicate, key or packer is run on them. What comes of it is kept in a file, whose name holds a hash
of the functions that were run. A pipeline with the same functions finds it there.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s, ranges
from shardctl.base.progress import Progress
from shardctl.base.text import choices, printable
from shardctl.base.tfds_rules import has_builder
from shardctl.dataset.dataset import ELEMENTS, as_dataset
from shardctl.errors import DatasetError
from shardctl.iteration.regrouped import packed
from shardctl.metadata.project_file import project_files
from shardctl.order.example_codes import ExampleCodes
from shardctl.saved.scan_file import SUFFIX, UNSEEN, Scan, read_scan, write_scan
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import SplitRange, resolve_subsplit
from shardctl.stages import stages as call
from shardctl.stages.part import Stage
from shardctl.stores.stores import working_folder
from shardctl.tfds.imports import tensorflow, versions, without_autograph
from shardctl.tfds.inspecting import graph
from shardctl.tfds.inspecting.graph import Graph, Operation, Options, node_name
from shardctl.tfds.inspecting.reader import UnknownReaderError, found_reader, reads_files
from shardctl.tfds.training.edited_graph import EditedGraph, GraphNode, NotRebuildable, size_of
from shardctl.tfds.training.own_elements import indexed
from shardctl.tfds.training.records import NumberedReader

_STAGES: Mapping[str, type[call.ByData]] = {
    "FilterDataset": call.Filter,
    "ParallelFilterDataset": call.Filter,
    "TakeWhileDataset": call.TakeWhile,
    "FlatMapDataset": call.FlatMap,
    "UnbatchDataset": call.FlatMap,
    "GroupByWindowDataset": call.GroupByWindow,
}
_PASSES_ON = (*graph.MAPS, *graph.GUARDS, *graph.CHOOSES, "PrefetchDataset")
# Stateful ops whose results are a matter of their inputs alone all the same.
_PURE = ("Assert", "Print", "PrintV2", "If", "While", "Case", "StatefulPartitionedCall")
# Of datasets within functions, those of which that is not so.
_IMPURE = ("Random", "Generator", "Shuffle", "Record", "TextLine", "FixedLength", "Cache", "Save")
# Of those within a reducer, what keeps the examples of a group, and their order.
_KEEPS_GROUPS = (*graph.MAPS, *graph.GUARDS, *graph.BATCHES, "PrefetchDataset")
_PIECE, _SECONDS = 1024, 5  # examples that are run together; between two times that it is kept
_HINT = "shardctl inspect --scan reads the examples once to find out"
_MOST_IN_WINDOW = 1 << 16
_MOST_PACKED = 1 << 10  # examples whose packed rows are compared


def _folder() -> Path:
    here = working_folder()
    found = next(project_files(here), None)
    return Path() if found is None else Path(os.path.relpath(found.parent, here))


@dataclass(kw_only=True)
class Scans:
    """The scans in a folder: beside the nearest shardctl.yaml, or in the working folder.

    runs: make those that are not there.
    """

    folder: Path = field(default_factory=_folder)
    runs: bool = False

    def __call__(
        self, here: Operation, stages: tuple[Stage, ...], options: Options
    ) -> tuple[Stage, ...]:
        """Return what an operation is by its scan; without one as it is, with what to do.

        options: those of the whole pipeline, which hold within functions, too.
        """
        is_open = [isinstance(one, call.Filter | call.Opaque) for one in stages]
        if here.op not in _STAGES or is_open != [True]:
            return stages
        (stage,) = stages
        try:
            _refuse_races(here, options)
            scan = _Scanned.of(here)
        except (NotRebuildable, UnknownReaderError) as why:
            reason = f"what it does depends on more than the example: {why}"
            return (call.Opaque(call=stage.called, reason=reason),)
        path = self.folder / f"{scan.stage.name}-{scan.key}{SUFFIX}"
        if self.runs:
            try:
                scan.run(str(path), self.folder)
            except (NotRebuildable, UnknownReaderError) as why:
                return (call.Opaque(call=stage.called, reason=f"it was not scanned: {why}"),)
        if path.exists():
            return (scan.stage(kept=str(path)),)
        reason = stage.why_open(None, None) or ""
        if next(self.folder.glob(f"{scan.stage.name}-*{SUFFIX}"), None) is not None:
            return (call.Opaque(call=stage.called, reason=f"{reason}; {_FOREIGN}"),)
        if isinstance(stage, call.Filter):
            return stages
        return (call.Opaque(call=stage.called, reason=f"{reason}; {_HINT}"),)


_FOREIGN = (
    "the scans that are kept here are of other functions, another dataset or another version of "
    "TensorFlow; scan again with shardctl inspect --scan"
)


@dataclass(kw_only=True)
class _Scanned:
    """A stage to scan, and how what it does to an example is found.

    window: the operation of the batch whose examples it packs, None where it takes examples.
    edited: the graph that makes one value of each example.
    """

    here: Operation
    edited: EditedGraph
    by: Any
    window: Operation | None = None
    key: str = ""

    @classmethod
    def of(cls, here: Operation) -> _Scanned:
        """Return how a stage is scanned.

        Raises:
            NotRebuildable: it depends on more than the example; a clause.
        """
        _refuse_state(here)
        tf = tensorflow()
        window = _window_of(here) if _STAGES[here.op] is call.FlatMap else None
        if window is not None:
            made = cls(here=here, window=window, edited=EditedGraph(top=window.input), by="lengths")
        elif here.op == "GroupByWindowDataset":
            _refuse_choosing(here)
            top = here.mapped("key_func", tf.int64)
            made = cls(here=here, edited=EditedGraph(top=top), by="key")
        elif here.op == "FlatMapDataset":
            top = here.mapped("f", tf.variant)
            made = cls(here=here, edited=EditedGraph(top=top), by="count")
        elif here.op == "UnbatchDataset":
            made = cls(here=here, edited=EditedGraph(top=here.input), by="count")
        else:
            top = here.mapped("predicate", tf.bool)
            by = "until" if here.op == "TakeWhileDataset" else "passes"
            made = cls(here=here, edited=EditedGraph(top=top), by=by)
        if any(n.kind == "zipped" and n.source is None for n in made.edited.root.walk()):
            raise NotRebuildable("examples before it are counted, or zipped with others")
        if made.edited.full_width != 1 or made.edited.is_formed:
            raise NotRebuildable("an element before it holds several examples")
        made.key = _key_of(here)
        return made

    @property
    def stage(self) -> type[call.ByData]:
        return _STAGES[self.here.op]

    def run(self, path: str, folder: Path) -> None:
        """Scan all examples that the file at a path does not have.

        Raises:
            NotRebuildable: what it does is no matter of the example.
            DatasetError: a function fails on an example.
        """
        source = _Source.of(self.edited)
        scan = Scan(
            call=self.stage.name,
            key=self.key,
            fingerprint="" if source.codes is None else source.codes.dataset.fingerprint,
            by=self.by,
            versions=versions(),
        )
        # What cannot be read is scanned anew.
        with suppress(DatasetError):
            scan = read_scan(path)
        packer = None if self.window is None else _Packer(self.here, self.window)
        scan.sizes = () if packer is None else packer.sizes
        if scan.values:
            column = scan.column(source.codes)
        else:
            shape = (source.size, *([len(scan.sizes)] if scan.sizes else []))
            column = np.full(shape, UNSEEN)
        is_unseen = (column[:, 0] if packer else column) == UNSEEN
        missing = np.any(source.wanted, axis=0) & is_unseen & self._reached(folder, source)
        what = f"examples scanned for {scan.call}"
        progress = Progress(what, int(missing.sum()), per_second=1000)
        for one in source.wanted:
            if (codes := np.flatnonzero(missing & one)).size:
                self._read(source, scan, column, codes, path, progress)
        if not source.size and self.by == "passes":
            self._keep(scan, source, column, path)  # of nothing
        if packer is not None:
            self._check_rows(packer, source, column)
        if self.by == "key" and not scan.has_windows():
            scan.windows = {**scan.windows, **self._windows(source, column)}
            self._keep(scan, source, column, path)

    def _reached(self, folder: Path, source: _Source) -> Any:
        """Return which examples come to the stage, past the filters before it."""
        reached = np.ones(source.size, bool)
        for node in self.edited.root.walk():
            if _STAGES.get(node.operation.op) is call.Filter:
                before = folder / f"filter-{_key_of(node.operation)}{SUFFIX}"
                if not before.exists():
                    raise NotRebuildable("a filter before it was not scanned")
                # Of several sources it is before some.
                others = ~source.below(node)
                reached &= (read_scan(str(before)).column(source.codes) > 0) | others
        return reached

    def _read(
        self,
        source: _Source,
        scan: Scan,
        column: Int64s,
        missing: Int64s,
        path: str,
        progress: Progress,
    ) -> None:
        done, latest = 0, time.monotonic()
        try:
            for values in self._values(source.elements(self.edited, missing)):
                here = missing[done : done + len(values)]
                if len(here) < len(values):
                    raise NotRebuildable("there are more elements than examples")
                column[here] = values
                done += len(values)
                progress.advance(len(values))
                if time.monotonic() - latest > _SECONDS:
                    self._keep(scan, source, column, path)
                    latest = time.monotonic()
            if done < len(missing):
                raise NotRebuildable("there are fewer elements than examples")
        except tensorflow().errors.OpError as error:
            said = printable(str(error).partition("\n")[0].rpartition("}} ")[2], 300)
            name = missing[done] if source.codes is None else source.codes.names(missing[[done]])[0]
            raise DatasetError(
                f"the scan of {scan.call} stopped near example {name}: {said}"
            ) from error
        finally:
            # Also of what is interrupted: the next scan reads on from there.
            if done:
                self._keep(scan, source, column, path)
        if scan.sizes and np.any(column > np.array(scan.sizes)):
            raise NotRebuildable("an example is longer than a packed row; trim it before")

    def _check_rows(self, packer: _Packer, source: _Source, column: Int64s) -> None:
        """Compare what it packs of real examples with what is expected of their lengths."""
        seen = column[:, 0] != UNSEEN
        codes = np.flatnonzero(seen & source.wanted[np.argmax(source.wanted.any(axis=1))])
        codes = codes[:_MOST_PACKED]
        whole = EditedGraph(top=self.here, packs=True)
        found = [
            [len(one) for one in row] for row in packer.tokens_of(source.elements(whole, codes))
        ]
        rows = packer.expected(column[codes])
        if found != [column[codes[row.start : row.stop]].sum(axis=0).tolist() for row in rows]:
            raise NotRebuildable("its rows depend on more than the lengths of the examples")

    def _keep(self, scan: Scan, source: _Source, column: Int64s, path: str) -> None:
        # Another pipeline with the same functions may have scanned other splits.
        scan.values = {**scan.values, **dict(source.by_split(column))}
        seen = np.concatenate([one[one != UNSEEN] for one in scan.values.values()])
        if self.by in ("count", "until"):
            scan.most = int(seen.max() if self.by == "count" else seen.min())
        write_scan(scan, path)

    def _values(self, made: Any) -> Iterable[Int64s]:
        """Yield what the stage does to examples, in pieces."""
        tf = tensorflow()
        if self.here.op == "FlatMapDataset" and self.by == "count":
            spec = self.here.types
            made = made.map(
                without_autograph(
                    lambda one: tf.data.experimental.from_variant(one, spec).reduce(
                        np.int64(0), lambda count, *_: count + 1
                    )
                )
            )
        elif self.by == "count":
            made = made.map(without_autograph(lambda *parts: tf.shape(parts[0], tf.int64)[0]))
        elif self.by == "lengths":
            made = made.map(without_autograph(_num_tokens))
        for piece in made.batch(_PIECE).prefetch(2).as_numpy_iterator():
            values = piece[0] if isinstance(piece, tuple) else piece
            yield values.astype(np.int64)

    def _windows(self, source: _Source, column: Int64s) -> dict[int, tuple[int, int]]:
        """Return of each key how many examples are a group, and of how many its batches are."""
        tf = tensorflow()
        if self.here.types[0].shape.rank == 0:
            raise NotRebuildable("its groups are no batches of one size")
        keys, first = np.unique(column, return_index=True)
        first, keys = first[keys != UNSEEN], keys[keys != UNSEEN]
        top = self.here.mapped("window_size_func", tf.int64)
        (below,) = top.inputs
        sized = EditedGraph(top=top, leaf=below)
        (sizes,) = zip(
            *sized.dataset([tf.data.Dataset.from_tensor_slices((keys,))]).as_numpy_iterator(),
            strict=True,
        )
        whole = EditedGraph(top=self.here)
        found = {}
        for key, code, size in zip(keys.tolist(), first.tolist(), map(int, sizes), strict=True):
            if not 0 < size <= _MOST_IN_WINDOW:
                raise NotRebuildable(f"a group of key {key} has {size} elements")

            def rows(times: int, code: int = code) -> list[int]:
                made = source.elements(whole, np.array([code]), times=times)
                count = made.map(without_autograph(lambda *parts: tf.shape(parts[0])[0]))
                return [int(one) for one in count.as_numpy_iterator()]

            full = rows(size)
            batch = full[0] if full else 0
            if not batch or full[:-1] != [batch] * (len(full) - 1):
                raise NotRebuildable("its groups are no batches of one size")
            drops = batch > 1 and not rows(1)
            if sum(full) != (size // batch * batch if drops else size):
                raise NotRebuildable("its batches hold other rows than its groups have")
            found[key] = size, -batch if drops else batch
        return found


# What is scanned, and in which order.


@dataclass(kw_only=True)
class _Source:
    """The examples of all sources in the order of their codes.

    wanted: bool[sources, size], which of them each reads. codes: None where they are counted.
    """

    size: int
    wanted: Any
    codes: ExampleCodes | None
    opened: Callable[[GraphNode], Any]

    @classmethod
    def of(cls, edited: EditedGraph) -> _Source:
        leaves = edited.root.leaves
        if any(reads_files(leaf.operation) for leaf in leaves):
            return cls._of_files(leaves)
        if edited.num_sources != 1:
            raise NotRebuildable("its examples come from several sources, each counted from 0")
        for op in (leaf.operation.op for leaf in leaves if leaf.operation.inputs):
            if op != "RepeatDataset":  # of one element, which tells no others apart
                raise NotRebuildable(f"{graph.call_name(op)} is before it")
        opened = {leaf.leaf: indexed(leaf.operation) for leaf in leaves}
        sizes = [int(one.cardinality()) for one in opened.values()]
        size = min((one for one in sizes if one >= 0), default=-1)
        if size < 0:
            raise NotRebuildable("its source has no known length")
        wanted = np.ones((1, size), bool)
        codes = ExampleCodes(as_dataset(f"range({size})"), [ELEMENTS])
        return cls(size=size, wanted=wanted, codes=codes, opened=lambda leaf: opened[leaf.leaf])

    @classmethod
    def _of_files(cls, leaves: list[GraphNode]) -> _Source:
        if not all(reads_files(leaf.operation) for leaf in leaves):
            raise NotRebuildable("only some of its sources read files")
        listed = [found_reader(leaf.operation).listed for leaf in leaves]
        dataset = listed[0].dataset
        if any(one.dataset.fingerprint != dataset.fingerprint for one in listed):
            raise NotRebuildable("its examples come from several datasets")
        parts = [resolve_subsplit(one.spec, dataset).ranges for one in listed]
        given = [reads_of(dataset, ranges) for ranges in parts]
        names = [piece.split.name for ranges in parts for piece in ranges]
        codes = ExampleCodes(dataset, names, *given)
        wanted = np.zeros((len(leaves), codes.num_codes), bool)
        for row, reads in zip(wanted, given, strict=True):
            row[ranges(codes.first_codes(reads), reads.take)] = True
        if wanted.sum(axis=0).max() > 1:
            raise NotRebuildable("several sources read the same examples")
        types = [[kind.dtype.name for kind in leaf.operation.types] for leaf in leaves]
        records = all(kinds in (["string"], ["string", "string"]) for kinds in types)
        if not records or not has_builder(dataset.file_format):
            raise NotRebuildable("a reader reads files in a way of its own")
        splits = map(dataset.split, codes.splits.names)
        whole = [SplitRange(split=split, start=0, stop=split.num_examples) for split in splits]

        def opened(leaf: GraphNode) -> Any:
            with_ids = len(leaf.operation.types) == 2
            form = dataset.file_format
            reader = NumberedReader(
                file_format=form, codes=codes, cycle=1, block=1, with_ids=with_ids
            )
            # As TFDS's reader yields it: the id first.
            numbered = reader.read(reads_of(dataset, whole))
            return numbered.map(without_autograph(lambda _, *record: record))

        return cls(size=codes.num_codes, wanted=wanted, codes=codes, opened=opened)

    def below(self, node: GraphNode) -> Any:
        """Return which examples come from the sources below a node, bool[size]."""
        return np.any(self.wanted[sorted({leaf.source or 0 for leaf in node.leaves})], axis=0)

    def elements(self, edited: EditedGraph, codes: Int64s, *, times: int = 1) -> Any:
        """Return what a graph makes of codes, ascending and all of one source, so many times."""
        tf = tensorflow()
        sets = tf.data.Dataset
        first, stop = int(codes[0]), int(codes[-1]) + 1
        (source,) = np.flatnonzero(self.wanted[:, first])
        chosen = np.zeros(stop - first, bool)
        chosen[codes - first] = True
        found = []
        for leaf in edited.root.leaves:
            made = self.opened(leaf)
            if leaf.source != source:
                found.append(made.take(0))
                continue
            made = made.skip(first).take(stop - first)
            if not chosen.all():
                pairs = sets.zip((sets.from_tensor_slices(chosen), made))
                pairs = pairs.filter(without_autograph(lambda is_chosen, _: is_chosen))
                made = pairs.map(without_autograph(lambda _, one: one))
            found.append(made.repeat(times))
        branches = (
            np.argmax([source in {leaf.source for leaf in one.leaves} for one in merged.inputs])
            for merged in edited.merges
        )
        count = len(codes) * times
        choices = [sets.from_tensors(np.int64(index)).repeat(count) for index in branches]
        return edited.dataset(found, choices)

    def by_split(self, column: Int64s) -> Iterable[tuple[str, Int64s]]:
        """Yield the values of each split."""
        if self.codes is None:
            yield "", column
            return
        parts = np.split(column, self.codes.splits.starts[1:])
        yield from zip(self.codes.splits.names, parts, strict=True)


def _num_tokens(*parts: Any) -> Any:
    """Return how many tokens each feature of an example has; 0 is none."""
    tf = tensorflow()
    return tf.stack([tf.math.count_nonzero(part, dtype=tf.int64) for part in parts])


def _window_of(here: Operation) -> Operation | None:
    """Return the batch whose rows a stage takes apart anew, None where it takes single examples."""
    below = here.input
    while below.op in _PASSES_ON:
        below = below.input
    return below if below.op in graph.BATCHES else None


def _refuse_state(here: Operation) -> None:
    """Refuse functions whose results are no matter of their inputs alone."""
    from tensorflow.python.framework import op_def_registry  # no public name

    found: set[str] = set()
    ahead = [here]
    while ahead:
        one = ahead.pop()
        if reads_files(one) and one is not here:
            continue
        ahead += one.inputs
        found |= one.graph.ops_in_functions(one.node)
        found |= {below.op for name in one.node.input for below in _captured(one, name)}
    bad = set()
    for op in found:
        definition = op_def_registry.get(op)
        if "Dataset" in op:
            if any(word in op for word in _IMPURE):
                bad.add(op)
        elif op not in _PURE and (definition is None or definition.is_stateful):
            bad.add(op)
    if bad:
        raise NotRebuildable(
            f"its functions, or maps before it, draw random numbers, keep a state or call Python "
            f"({choices(sorted(bad), 4)})"
        )


def _refuse_races(here: Operation, options: Options) -> None:
    """Refuse functions in which a stage yields what is ready first."""
    racing = [b"false"] * (not options.op_determinism)
    racing += [b"default"] * options.hands_out_what_is_ready
    for inner in here.graph.nodes_in_functions(here.node):
        if "deterministic" in inner.attr and inner.attr["deterministic"].s in racing:
            name = graph.call_name(inner.op)
            raise NotRebuildable(f"{name} in its function yields elements in order of completion")


def _refuse_choosing(here: Operation) -> None:
    """Refuse a reducer of groups in which more than maps and batches stands.

    A scan gives it one example, as often as a group is large: that shows neither which examples of
    a group it drops nor their order.
    """
    inner = {op for op in here.graph.ops_in_functions(here.node) if "Dataset" in op}
    if others := inner - set(_KEEPS_GROUPS):
        names = choices(sorted(map(graph.call_name, others)), 4)
        raise NotRebuildable(f"its groups are made by {names}, and not by batches alone")


def _captured(here: Operation, tensor: str) -> Iterable[Any]:
    node = here.graph.nodes.get(node_name(tensor))
    if node is not None and "Dataset" not in node.op:
        yield from here.graph.below(node)


# The packer of a window, run on rows that say which example they are.


class _Packer:
    """What packs the examples of a window into rows: run on rows of known lengths and contents.

    It is taken for the packer of Tensor2Tensor where all that it makes of these is what that makes.

    Raises:
        NotRebuildable: it makes other rows, or packs other features.
    """

    def __init__(self, here: Operation, window: Operation) -> None:
        self._specs = window.input.types
        if any(not one.dtype.is_integer or one.shape.rank != 1 for one in self._specs):
            raise NotRebuildable("features other than rows of whole numbers are packed")
        self._edited = EditedGraph(top=here, leaf=window.input, packs=True)
        self._window, self._drops = size_of(window), bool(window.value("drop_remainder"))
        # Of one example, whose tokens tell the features apart.
        features = range(len(self._specs))
        told = self._made([[np.full(2, 100 + index) for index in features]])
        (row, *others) = [*_rows(told)] or [()]
        found = [[i for i, part in enumerate(row) if 100 + index in part] for index in features]
        if others or not all(found):
            raise NotRebuildable("it does not pack one example into one row")
        self._columns = [columns[0] for columns in found]
        self.sizes = tuple(len(row[column]) for column in self._columns)
        if not all(self._is_known(number) for number in range(8)):
            raise NotRebuildable(
                "it packs a window in a way that is not known: that of Tensor2Tensor, seqio, T5, "
                "Flax and MaxText is"
            )

    def tokens_of(self, made: Any) -> list[list[Any]]:
        """Return the tokens of each feature in each row that a dataset yields; 0 is none."""
        return [[row[column][row[column] != 0] for column in self._columns] for row in _rows(made)]

    def expected(self, lengths: Int64s) -> list[range]:
        """Return the examples of each row, where each has so many tokens of each feature."""
        found, ends = [], [0]
        for first in range(0, len(lengths), self._window):
            part = lengths[first : first + self._window]
            for width in packed(part, self.sizes).tolist() * (
                len(part) == self._window or not self._drops
            ):
                found.append(range(ends[-1], ends[-1] + width))
                ends.append(ends[-1] + width)
        return found

    def _is_known(self, number: int) -> bool:
        """Whether random windows are packed as expected."""
        draw, window = np.random.default_rng(number), self._window
        count = min([1, 2, min(window, 60), window, window + 3, 2 * window][number % 6], 700)
        lengths = np.array(
            [
                [draw.integers(1, max(size // draw.choice([1, 2, 4, 9]), 1) + 1) for size in sizes]
                for sizes in [self.sizes] * count
            ]
        )
        # Zeros within an example are no tokens.
        given = [
            [
                np.insert(np.full(length, index + 1), length // 2, [0] * draw.integers(2))
                for length in row
            ]
            for index, row in enumerate(lengths.tolist())
        ]
        try:
            found = self.tokens_of(self._made(given))
        except tensorflow().errors.OpError:
            return False
        expected = [
            [
                np.repeat(members, lengths[members, feature]) + 1
                for feature in range(len(self.sizes))
            ]
            for members in map(np.array, self.expected(lengths))
        ]
        return [[one.tolist() for one in row] for row in found] == [
            [one.tolist() for one in row] for row in expected
        ]

    def _made(self, examples: list[list[Any]]) -> Any:
        types = [spec.dtype.as_numpy_dtype for spec in self._specs]

        def each() -> Iterable[tuple[Any, ...]]:
            for parts in examples:
                yield tuple(part.astype(kind) for part, kind in zip(parts, types, strict=True))

        sets = tensorflow().data.Dataset
        return self._edited.dataset([sets.from_generator(each, output_signature=self._specs)])


def _rows(made: Any) -> Iterable[tuple[Any, ...]]:
    return (row if isinstance(row, tuple) else (row,) for row in made.as_numpy_iterator())


# The key: a hash of the functions that are run, and of what they capture, whatever its names are.

_VERSION = "1"


def _key_of(here: Operation) -> str:
    """Return a hash of what a stage and the maps before it do to an example, in 12 letters."""
    digests = _Digests(here.graph)
    said = "/".join([_VERSION, *(f"{k}={v}" for k, v in sorted(versions().items()))])
    return digests.joined([said, digests.of_operation(here)])[:12]


class _Digests:
    """Hashes of operations, nodes and functions of a graph by what they do."""

    def __init__(self, within: Graph) -> None:
        self._graph = within
        self._library = {f.signature.name: f for f in within.definition.library.function}
        self._functions: dict[str, str] = {}
        self._nodes: dict[str, str] = {}

    def joined(self, parts: Iterable[str]) -> str:
        """Return the hash of several texts."""
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def of_operation(self, here: Operation) -> str:
        """Return the hash of an operation and of what it reads, down to the files."""
        if reads_files(here):
            try:
                return found_reader(here).listed.dataset.fingerprint
            except UnknownReaderError:
                return "files"  # of an order that is not known either
        if here.op in (*graph.GUARDS, *graph.CHOOSES, "PrefetchDataset") and (
            here.op not in _STAGES
        ):
            return self.of_operation(here.input)
        names = here.node.input[len(here.inputs) :]
        others = self._of(map(node_name, names), self._graph.nodes, self._nodes, {})
        return self.joined([*self._said(here.node), *others, *map(self.of_operation, here.inputs)])

    def _of(
        self,
        roots: Iterable[str],
        nodes: Mapping[str, Any],
        done: dict[str, str],
        given: Mapping[str, str],
    ) -> list[str]:
        """Return the hashes of nodes; inputs come first, without recursion."""
        roots = list(roots)
        done.update(given)
        waiting = list(roots)
        while waiting:
            name = waiting[-1]
            if name in done:
                waiting.pop()
                continue
            node = nodes[name]
            missing = [one for one in map(node_name, node.input) if one not in done]
            if missing:
                waiting += missing
                continue
            inputs = [done[node_name(one)] + one.partition(":")[2] for one in node.input]
            done[name] = self.joined([*self._said(node), *inputs])
        return [done[name] for name in roots]

    def _said(self, node: Any) -> list[str]:
        """Return the op of a node and its attributes, functions by their hashes."""
        op = self._of_function(node.op) if node.op in self._library else node.op
        return [
            op,
            *(
                f"{key}:{self._of_attribute(node.attr[key])}"
                for key in sorted(node.attr)
                if not key.startswith("_") and key != "metadata"
            ),
        ]

    def _of_attribute(self, attr: Any) -> str:
        if attr.HasField("func"):
            return self._of_function(attr.func.name)
        if attr.list.func:
            return self.joined(self._of_function(one.name) for one in attr.list.func)
        return hashlib.sha256(attr.SerializeToString(deterministic=True)).hexdigest()

    def _of_function(self, name: str) -> str:
        if name not in self._functions:
            definition = self._library[name]
            nodes = {node.name: node for node in definition.node_def}
            given = {
                arg.name: f"in {i} {arg.type}"
                for i, arg in enumerate(definition.signature.input_arg)
            }
            results = [definition.ret[arg.name] for arg in definition.signature.output_arg]
            roots = [node_name(one) for one in (*results, *definition.control_ret.values())]
            found = self._of(roots, nodes, {}, given)
            outputs = [one.partition(":")[2] for one in results]
            self._functions[name] = self.joined([*found, *outputs])
        return self._functions[name]
