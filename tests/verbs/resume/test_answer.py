from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.files.documents import to_json, to_yaml
from shardctl.order.plan_order import plan_order
from shardctl.saved.plan_file import parse_plan, plan_document
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import BufferMode, resume
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.proof import prove
from tests.cases import FUZZ, check_cases
from tests.golden import assert_evaluated
from tests.tfdata.shuffle_oracles import interleave_by_hand
from tests.verbs.resume.resume_cases import TOY, Case, cases, dataset

Example = tuple[str, int]


def test_steps_are_batches_of_the_whole_order_with_or_without_a_seed() -> None:
    def consumed_and_left(epochs: int, drop: bool, steps: int) -> tuple[int, int]:
        settings = ReadSettings(batch=4, drop_remainder=drop, epochs=epochs)
        plan = resume(TOY, "train", settings, steps=steps)
        left = epochs * 11 - plan.consumed - (epochs * 11 % 4 if drop else 0)
        assert plan.remaining_total == left
        return plan.consumed, left

    def left(mode: BufferMode, drop: bool) -> tuple[int, int]:
        settings = ReadSettings(cycle=1, buffer=3, batch=4, drop_remainder=drop, epochs=2)
        plan = resume(TOY, "train", settings, steps=2, mode=mode)
        return plan.remaining, plan.remaining_total

    assert_evaluated(globals(), "steps-left", consumed_and_left, left)


def test_a_place_outside_the_order_is_refused() -> None:
    assert_evaluated(globals(), "outside")


@pytest.mark.parametrize("mode", [None, "exactly-once"])
def test_instructions_list_what_a_seeded_buffer_held(mode: BufferMode | None) -> None:
    settings = ReadSettings(buffer=4, buffer_seed=1)
    plan = resume(TOY, "train", settings, consumed=3, mode=mode)
    assert plan.mode == (mode or "exact-order")
    yielded = plan_order(TOY, "train", settings).order.read(0, 3).tolist()
    rows = zip(plan.instructions.first, plan.instructions.take, strict=True)
    left = [int(first) + index for first, take in rows for index in range(take)]
    assert sorted([*yielded, *left]) == list(range(11))


def test_what_a_buffer_held_is_read_in_runs_of_adjacent_examples() -> None:
    settings = ReadSettings(cycle=1, buffer=11, buffer_seed=1)
    plan = resume(TOY, "train", settings, consumed=1)
    assert len(plan.pending or ()) == 10
    assert plan.num_pending_instructions <= 4  # of three files, one of which lacks an example


@pytest.mark.long
@pytest.mark.parametrize("cycle", [1, 2, 4])
def test_a_stream_without_end_goes_on_at_every_place(cycle: int) -> None:
    toy = dataset(train=(3, 1, 4, 2))
    settings = ReadSettings(cycle=cycle, block=2, shuffle_seed=3, repeat_files=True, epochs=3)
    for consumed in range(31):
        assert prove(toy, resume(toy, "train", settings, consumed=consumed)).holds


def test_an_order_that_tensorflow_leaves_open_is_refused() -> None:
    with pytest.raises(UnpredictableOrderError):
        resume(TOY, "train", ReadSettings(shuffle_files=True), consumed=1)


def read_by_hand(toy: Dataset, reads: list[Any], plan: ResumePlan) -> list[Example]:
    """Return (file name, index in it) in the order that tf.data's interleave reads them."""
    config = plan.read_config
    assert config is not None
    machine = interleave_by_hand(
        [read.take for read in reads],
        config["interleave_cycle_length"],
        config["interleave_block_length"],
    )
    return [(reads[i].filename, reads[i].skip + offset) for i, offset in machine]


def every_nth(examples: list[Example], plan: ResumePlan) -> list[Example]:
    host = plan.settings.host
    if host is None or plan.settings.host_by != "examples":
        return examples
    return examples[host.index :: host.count]


def handed_out(case: Case, settings: ReadSettings, start: int, stop: int) -> list[Example]:
    """Return what the uninterrupted pipeline hands out at positions [start, stop)."""
    order = plan_order(case.dataset, case.spec, settings).order
    names = order.codes.tfds_ids(order.read(start, stop))
    return [(name.rpartition("__")[0], int(name.rpartition("__")[2])) for name in names]


def check(case: Case) -> None:
    """Hold a plan, as it comes back from its file, against the uninterrupted pipeline."""
    try:
        order = plan_order(case.dataset, case.spec, case.settings).order
    except UsageError:  # fewer files than hosts
        return
    consumed = case.stop % (order.num_examples + 1)
    made = resume(case.dataset, case.spec, case.settings, consumed=consumed, mode=case.mode)
    text = "".join((to_json, to_yaml)[case.stop % 2](plan_document(made)))
    plan = applied(parse_plan(text.encode(), source="plan"), case.dataset)
    assert plan == made
    undropped = replace(case.settings, batch=None, drop_remainder=False)
    expected = handed_out(case, undropped, consumed, consumed + plan.remaining)
    reads = list(plan.file_instructions)
    assert all(r.skip + r.take <= r.examples_in_shard for r in reads)
    held = reads[: plan.num_pending_instructions]
    rest = every_nth(read_by_hand(case.dataset, reads[len(held) :], plan), plan)
    found = read_by_hand(case.dataset, held, plan) + rest
    if plan.mode == "exact":
        assert found == expected
    elif not plan.is_one_stream:  # whose buffer reads beyond the end
        assert Counter(found) == Counter(expected)
    if plan.mode == "exact-order":
        assert order_through_buffer(case, plan, rest) == expected
        assert made == resume(case.dataset, case.spec, case.settings, consumed=consumed)


def order_through_buffer(case: Case, plan: ResumePlan, rest: list[Example]) -> list[Example]:
    """Return what comes out of the buffer: shuffle_dataset_op.cc, element by element.

    It is filled from input 0 on; of the inputs before the plan's only the pending ones have names.
    """
    from shardctl.tfdata.philox import philox_samples

    state, order = plan.shuffle, plan_order(case.dataset, case.spec, case.settings).order
    if state is None or not plan.remaining:
        return []
    pending = iter(plan.pending or ())
    samples = philox_samples(state.seeds.seed, state.seeds.seed2, 0, state.num_elements).tolist()
    slots: list[int] = []
    given = out = 0
    emitted: list[int] = []
    size = min(state.buffer_size, state.num_elements)
    while out < state.emitted + plan.remaining:
        while len(slots) < size and given < state.num_elements:
            slots.append(given)
            given += 1
        left = len(slots) if given == state.num_elements else size
        at = samples[out] % left
        emitted.append(slots[at])
        # The head of the buffer takes the place of what went out (a ring in TensorFlow).
        slots[at] = slots[0]
        slots.pop(0)
        out += 1
    held = sorted(set(range(state.num_read)) - set(emitted[: state.emitted]))
    names = dict(zip(held, pending, strict=True))
    found = []
    for position in emitted[state.emitted :]:
        if position < state.num_read:
            code = order.codes.parse(str(names[position]))
            tfds_id = order.codes.tfds_ids([code])[0]
            found.append((tfds_id.rpartition("__")[0], int(tfds_id.rpartition("__")[2])))
        else:
            found.append(rest[position - state.num_read])
    return found


@pytest.mark.long
def test_plans_continue_as_the_uninterrupted_pipeline_does() -> None:
    check_cases(cases(), check, 80)


@pytest.mark.fuzz
def test_plans_fuzzed() -> None:
    check_cases(cases(), check, FUZZ * 5)
