"""A part of an order as blocks, ids a line, records, an array file, or code that has it."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.columns import RecordStream, picked
from shardctl.base.tfds_rules import POSITIONS
from shardctl.draw.step_rows import order_head, order_heading, order_rows, pipeline_record
from shardctl.draw.tables import Screen, paragraph
from shardctl.errors import UsageError
from shardctl.files.documents import Chunks, Document, json_lines
from shardctl.verbs.locate.answer import MATCH_FIELDS, match_columns
from shardctl.verbs.simulate.answer import Simulation

_PIECE = 1 << 14  # examples made into text at once


def simulate_table(simulation: Simulation, screen: Screen) -> Iterator[str]:
    """Yield the line that names the pipeline, and the ids, a row for each block of a shard."""
    order = simulation.order
    yield from order_heading(simulation.spec, order, screen, "bold")
    total = "an endless order" if order.is_endless else f"{order.num_examples:,}"
    if not simulation.take:
        yield paragraph(
            f"no positions of {total}" if order.is_endless else f"0 of {total} positions", screen
        )
        return
    last = simulation.skip + simulation.take - 1
    yield paragraph(f"positions {simulation.skip:,} to {last:,} of {total}", screen)
    if screen.pictures:
        from shardctl.draw.picture import picture_lines

        yield from picture_lines(simulation, screen)
        yield "\n"
    yield from order_rows(order, simulation.chunks(), simulation.skip, screen)


def simulate_document(simulation: Simulation) -> Document:
    """Return the document of `simulate`."""
    order = simulation.order
    return {
        **order_head("simulate", order),
        "spec": simulation.spec,
        "pipeline": pipeline_record(order),
        "num_examples": None if order.is_endless else order.num_examples,
        **picked(simulation, "skip take"),
        # Written piece by piece, so that a long order takes no memory.
        "ids": Chunks(lambda: _ids(simulation)),
    }


def _ids(simulation: Simulation) -> Iterator[list[int] | list[str]]:
    return (simulation.order.codes.ids(codes) for _, codes in _pieces(simulation))


def id_lines(simulation: Simulation) -> Iterator[str]:
    """Yield the ids, a line each."""
    return ("".join(f"{name}\n" for name in ids) for ids in _ids(simulation))


def tfds_id_lines(simulation: Simulation) -> Iterator[str]:
    """Yield the tfds_ids, a line each.

    Raises:
        UsageError: the elements are of no file.
    """
    if simulation.order.dataset.file_format == POSITIONS:
        raise UsageError(f"elements of {simulation.order.dataset.title} have no tfds_id; -f ids")
    for _, codes in _pieces(simulation):
        yield "".join(f"{name}\n" for name in simulation.order.codes.tfds_ids(codes))


def simulate_lines(simulation: Simulation) -> Iterator[str]:
    """Yield a JSON record for each example, a line each."""
    return json_lines(simulate_rows(simulation))


def simulate_rows(simulation: Simulation) -> RecordStream:
    """Return the record of each example."""
    return RecordStream(
        MATCH_FIELDS,
        lambda: (
            (len(codes), match_columns(simulation.order, positions, codes))
            for positions, codes in _pieces(simulation)
        ),
    )


def _pieces(simulation: Simulation) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield the positions and the codes, int64[q] each, in pieces that become text at once."""
    position = simulation.skip
    for codes in simulation.chunks():
        for begin in range(0, len(codes), _PIECE):
            # At most _PIECE examples become text at once.
            piece = codes[begin : begin + _PIECE]
            yield np.arange(position, position + len(piece)), piece
            position += len(piece)


def array_file(simulation: Simulation) -> Iterator[bytes | memoryview]:
    """Yield an .npy file of the ids, int64[take], chunk by chunk, as bytes.

    Raises:
        UsageError: the spec reads several splits, whose ids are not numbers.
    """
    if simulation.order.codes.several_splits:
        raise UsageError(
            f"--format npy holds numbers, and {simulation.spec} reads several splits, whose ids "
            "are written split:id; choose ids, tfds-ids or jsonl"
        )
    header, shape = io.BytesIO(), (simulation.take,)
    described = {"descr": "<i8", "fortran_order": False, "shape": shape}
    # NumPy's own header; the data follows as little-endian int64, whatever the machine.
    np.lib.format.write_array_header_1_0(header, described)
    yield header.getvalue()
    for codes in simulation.chunks():
        # A view of bytes: nothing is copied.
        yield simulation.order.codes.numbers(codes).astype("<i8", copy=False).data.cast("B")


# The order as code: the calls of TFDS and tf.data that have it.


def simulate_python(simulation: Simulation) -> Iterator[str]:
    """Yield code that makes `ds`, whose iterations have the order.

    What is shown of the order (`skip`, `take`) is no part of the pipeline.

    Raises:
        DatasetError: `as_dataset` does not read the format.
        UsageError: a list of more files than code is to hold, or nothing to read.
    """
    # Imported when code is asked for: it takes longer than the order itself.
    from shardctl.code import reader
    from shardctl.code.pipeline import order_module
    from shardctl.code.source import module, order_comment
    from shardctl.loaders.loader import library_of
    from shardctl.order.loader_order import LoaderOrder

    order, settings = simulation.order, simulation.order.settings
    notes = order_comment(simulation.spec, order)
    if isinstance(order, LoaderOrder):
        # Another loader is called by the code of its own library.
        yield from module(notes, *library_of(order.loader).code(simulation.spec, order))
        return
    if not len(order.reads):
        raise reader.nothing_to_read(simulation.spec, settings)
    yield from order_module(order, simulation.spec, notes, _how_to_read(simulation))


def _how_to_read(simulation: Simulation) -> Iterator[str]:
    settings = simulation.order.settings
    index = settings.pass_index
    if settings.loop == "keras-fit":
        yield f"# The order is that of epoch {index} of fit, counted from 0."
        yield f"model.fit(ds, epochs={index + 1})"
    elif index:
        yield f"# The order of iteration {index} of ds, counted from 0. Each draws new seeds:"
        yield f"# iterate over all of ds before, {'once' if index == 1 else f'{index} times'}."
