"""Pipelines of TFDS that stop somewhere, and plans to continue them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset
from shardctl.files.documents import to_json, to_yaml
from shardctl.order.order import Order
from shardctl.saved.plan_file import parse_plan, plan_document
from shardctl.saved.resume_plan import ResumePlan
from shardctl.verbs.resume.apply_plan import applied
from tests.order.order_cases import changed, elements
from tests.order.toy_pipelines import Case, Toy, cases, predicted, read_by_tfds, shuffled_paths

NUM_STOPS = 5


@st.composite
def stops(draw: st.DrawFn, buffered: bool) -> tuple[Case, list[int]]:
    """A pipeline with or without a shuffle buffer, and numbers that choose where it stops."""
    case = draw(cases().filter(lambda case: (case.settings.buffer is not None) or not buffered))
    if not buffered:
        no_buffer = {"buffer": None, "buffer_seed": None, "buffer_reshuffle": None}
        case = replace(case, settings=changed(case.settings, **no_buffer))
    if case.toy == "several":  # whose files a list has to tell apart
        case = replace(case, file_order=None)
    return case, draw(st.lists(st.integers(0, 10**6), min_size=NUM_STOPS, max_size=NUM_STOPS))


def stopping_points(order: Order, numbers: Sequence[int]) -> list[int]:
    """Return places to stop: the ends of the order, of epochs, shards and blocks, and between."""
    total, block = order.num_examples, order.settings.block
    ids = order.codes.places(order.read(0, total))
    lengths = [split.shard_lengths for split in order.dataset.splits]
    ends = [
        position + 1
        for position, (split, shard, index) in enumerate(zip(*map(list, ids), strict=True))
        if index + 1 == lengths[split][shard]
    ]
    kinds = [
        [0, 1, total - 1, total],
        [epoch * order.epoch_size for epoch in range(order.settings.epochs + 1)],
        ends,
        list(range(0, total + 1, block)),
        list(range(total + 1)),
        [edge + block // 2 for edge in range(0, total, block)],
    ]
    chosen: set[int] = set()
    for number in numbers:
        kind = [place for place in kinds[number % len(kinds)] if 0 <= place <= total] or [0]
        place = kind[number // len(kinds) % len(kind)]
        while place in chosen and len(chosen) <= total:
            place = (place + 1) % (total + 1)
        chosen.add(place)
    return sorted(chosen)


def from_a_file(plan: ResumePlan, dataset: Dataset, number: int) -> ResumePlan:
    """Return a plan as it comes back from its file."""
    text = "".join((to_json, to_yaml)[number % 2](plan_document(plan)))
    return applied(parse_plan(text.encode(), source="plan"), dataset)


def in_files(lines: Sequence[str]) -> list[str]:
    """Return ids without folders: TFDS names those in which its files differ."""
    return [line.rpartition("/")[2] for line in lines]


def stopped(toy: Toy, case: Case, pass_index: int) -> tuple[Order, list[str]] | None:
    """Return the order of a pass and what TFDS reads in it, None where it refuses."""
    settings = case.settings
    if case.file_order is not None:
        settings = changed(settings, file_order=tuple(shuffled_paths(toy, case.file_order)))
    order = predicted(toy, case, changed(settings, pass_index=pass_index))
    if order is None:
        return None
    dataset = read_by_tfds(toy, case, settings, order.epoch_size)
    for _ in range(pass_index):
        elements(dataset, bytes.decode)
    return order, in_files(elements(dataset, bytes.decode))


def lines_of(dataset: Any) -> list[str]:
    return in_files(elements(dataset, bytes.decode))
