"""What buffers take in memory, and what an amount of memory buys: text and record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from shardctl.core.columns import picked, record_of
from shardctl.core.dataset.element_size import ElementSize
from shardctl.core.phrase import phrase
from shardctl.core.text import choices, counted
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.what_if import Measured, MemoryBudget
from shardctl.rendering.text.quantities import human_bytes

_MOST_NAMES = 4
_MEASURED = "score=score.value verdict"


def counted_how(size: ElementSize | None) -> str:
    """Return how far the bytes of a buffer can be trusted, nothing where they are not known."""
    if size is None or size.certain:
        return "" if size is None else "decoded"
    return "as stored (decoded images take more)" if size.basis == "stored" else "or more"


def memory_lines(plan: Quality) -> Iterator[str]:
    """Yield as phrases what an example takes, what the present buffer does, and what memory buys.

    Nothing where the size of an example is not known."""
    size = plan.element_size
    if size is None:
        return
    yield phrase("an example in a buffer: {}", _example(size))
    if plan.buffer_bytes is not None and plan.order.num_buffered is not None:
        held = min(plan.order.num_buffered, plan.order.stream_size)
        taken = f"{human_bytes(plan.buffer_bytes)} {counted_how(size)}"
        yield f"the buffer of {counted(held, 'example')}: {taken}"
    if plan.memory is not None:
        yield from _budget(plan, plan.memory, size)


def _example(size: ElementSize) -> str:
    each = human_bytes(math.ceil(size.num_bytes))
    if size.basis == "given":
        return f"{each}, {size.overhead:,} of them TensorFlow's own"
    if size.basis == "features" and not size.unknown:
        return (
            f"{each}, from the shapes and dtypes in features.json; {size.overhead:,} of them "
            "TensorFlow's own"
        )
    if size.unknown:
        names = choices(size.unknown, _MOST_NAMES)
        why = f"features.json gives no fixed size for: {names}"
        if size.basis == "features":
            return phrase("at least {}, since {}; {example_bytes=N} says what it is", each, why)
    else:
        why = "no readable features.json is here"
    return phrase(
        "{} as stored on average, since {}; decoded, images take several times as much: "
        "{example_bytes=N} says what it is",
        each,
        why,
    )


def _budget(plan: Quality, memory: MemoryBudget, size: ElementSize) -> Iterator[str]:
    amount = human_bytes(memory.num_bytes)
    if plan.order.settings.host is not None:
        amount += " on each host"
    if memory.buffer is None:
        yield f"{amount} buys no shuffle: it holds {counted(memory.fits, 'example')}"
        return
    most = "at most " if size.basis == "features" and size.unknown else ""
    held = f"{most}{memory.buffer:,} examples"
    if memory.whole_epoch:
        held = f"all {memory.buffer:,} examples of the epoch"
    if not size.certain:
        held += " of that size"
    yield phrase(
        "{} holds {}: {buffer=} scores {} ({}); without a buffer {}",
        amount,
        held,
        f"{memory.score:.4f}",
        memory.verdict,
        _scored(memory.without),
        buffer=memory.buffer,
    )
    if memory.files is not None:
        yield phrase(
            "with {shuffle_files=True} besides: {}; files shuffled alone: {}",
            "refused by TFDS" if memory.both is None else _scored(memory.both),
            _scored(memory.files),
        )
    if not memory.gains:
        yield "the buffer gains next to nothing"
    if memory.files_do_as_well:
        yield "shuffling files does as well alone, and takes no memory"


def _scored(measured: Measured) -> str:
    return f"{measured.score.value:.4f} ({measured.verdict})"


def memory_record(plan: Quality) -> dict[str, Any]:
    """Return what buffers take and what the memory buys, with the names of the document."""
    size, memory = plan.element_size, plan.memory
    return {
        "example_bytes": size
        and {"num_bytes": math.ceil(size.num_bytes), **picked(size, "basis unknown overhead")},
        "buffer_bytes": plan.buffer_bytes,
        "memory": memory
        and {
            **picked(memory, "num_bytes fits buffer whole_epoch score verdict"),
            "without_buffer": record_of(memory.without, _MEASURED),
            "files_shuffled": record_of(memory.files, _MEASURED),
            "files_shuffled_too": record_of(memory.both, _MEASURED),
        },
    }
