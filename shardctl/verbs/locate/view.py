"""Located examples as a table, a document, rows, or code that fetches them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

import numpy as np

from shardctl.base.columns import RecordStream
from shardctl.base.phrase import refused
from shardctl.base.text import counted
from shardctl.base.tfds_rules import POSITIONS
from shardctl.dataset.dataset import Dataset
from shardctl.draw.step_rows import order_head, order_heading
from shardctl.draw.tables import Screen, columns, paragraph, table_pieces
from shardctl.files.documents import Document
from shardctl.verbs.locate.answer import Located


def locate_table(located: Located, screen: Screen, *, spec: str) -> Iterator[str]:
    """Yield the pipeline's line and a row for each match."""
    order = located.order
    yield from order_heading(spec, order, screen)
    if not located.matches:
        yield paragraph("no matches", screen)
        return
    batched = "step index_in_batch=in_batch" if order.has_steps else ""
    named = "" if order.dataset.file_format == POSITIONS else "<tfds_id=tfds__id_(file____index)"
    shown = columns(f"position epoch {batched} id {named}")
    row = attrgetter(*(column.field for column in shown))
    yield from table_pieces(shown, located.matches.map(row), screen)


def locate_document(located: Located) -> Document:
    """Return the document of `locate`."""
    return {**order_head("locate", located.order), "matches": located.matches.records}


def locate_rows(located: Located) -> RecordStream:
    """Return the record of each match."""
    return located.matches.records


# The examples as code that fetches them.


def locate_python(located: Located, *, spec: str) -> Iterator[str]:
    """Yield code that reads the examples, and no others, with TFDS: `ds`, in the order located.

    Each dataset of a mixture has its own `ds`.

    Raises:
        DatasetError: TFDS does not read the format.
        UsageError: nothing was found, or more than code is to hold.
    """
    # Imported when code is asked for: it takes longer than the order itself.
    from shardctl.code import reader
    from shardctl.code.python_text import comment, module, order_comment

    order = located.order
    runs = list(_runs(located))
    if not 0 < len(runs) <= reader.MAX_NAMES:
        raise refused(
            "--format python reads 1 to {:,} slices of examples, and these are {:,}",
            reader.MAX_NAMES,
            len(runs),
        )
    sources = {one.name.removesuffix(one.spec): one.dataset for one in order.origins.values()}
    parts: list[list[str]] = []
    for label, dataset in (sources or {"": order.dataset}).items():
        names = [split.name for split in dataset.splits]
        own = [run for run in runs if run[0].startswith(label) and run[0][len(label) :] in names]
        if own:
            name = f"ds_{len(parts) + 1}" if len(sources) > 1 else "ds"
            slices = [f"{split[len(label) :]}[{start}:{stop}]" for split, start, stop in own]
            parts.append([*reader.builder(dataset), *_reading(dataset, name, slices)])
    notes = [*order_comment(spec, order)]
    notes += comment(f"{counted(len(located.matches), 'example')} of it, read one after the other.")
    imports = reader.imports(line for part in parts for line in part)
    yield from module(notes, imports, *parts)


def _reading(dataset: Dataset, name: str, slices: Sequence[str]) -> Iterator[str]:
    """Yield what reads slices of a dataset with `builder`, one after the other, as `name`."""
    from shardctl.code.python_text import literal
    from shardctl.order.resolved_spec import NOT_BY_AS_DATASET, refuse_unreadable

    yield from ("slices = [", *(f"    {literal(one)}," for one in slices), "]")
    splits = '"+".join(slices)'
    if len(slices) > _AT_ONCE:
        yield f"starts = range(0, len(slices), {_AT_ONCE})  # TFDS cannot add 980 slices at once"
        yield f'sums = ["+".join(slices[start : start + {_AT_ONCE}]) for start in starts]'
        splits = "sums"
    if dataset.file_format in NOT_BY_AS_DATASET:  # a list, or a sequence that reads by index
        made = f"builder.as_data_source(split={splits})"
        several = f"[example for part in {made} for example in part]"
        yield f"{name} = {several if splits == 'sums' else made}"
        return
    refuse_unreadable(dataset)
    yield "read_config = tfds.ReadConfig(interleave_cycle_length=1, add_tfds_id=True)"
    first = f"{name}, *more" if splits == "sums" else name
    yield f"{first} = builder.as_dataset(split={splits}, read_config=read_config)"
    if splits == "sums":
        yield from ("for part in more:", f"    {name} = {name}.concatenate(part)")


# Slices in a sum: TFDS 4.9.10 adds them by recursion, which fails from about 980 on
# (core/splits.py, _SplitAdd.to_absolute).
_AT_ONCE = 500


def _runs(located: Located) -> Iterator[tuple[str, int, int]]:
    """Yield the split and the ids [start, stop) of examples that follow each other in it."""
    codes, splits = located.order.codes, located.order.codes.dataset.splits
    split, ids = codes.places(located.codes)[0], codes.split_ids(located.codes)
    breaks = np.flatnonzero((np.diff(ids) != 1) | (np.diff(split) != 0)) + 1
    for first, stop in pairwise([0, *breaks.tolist(), len(ids)]):
        if first < stop:
            yield splits[int(split[first])].name, int(ids[first]), int(ids[stop - 1]) + 1
