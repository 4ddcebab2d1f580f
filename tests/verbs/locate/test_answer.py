"""Located examples: where each is in the order and on disk, both ways."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.locate.answer import Located, Query, QueryKind, locate_in, matches_at
from tests.cases import check_cases
from tests.order.order_cases import changed, read_settings

LENGTHS = {"train": (3, 0, 4, 2), "test": (2, 1)}
TOY = Dataset(
    name="d",
    splits=tuple(
        Split(
            name=name,
            shard_lengths=lengths,
            files=(ShardFiles(pattern=f"d-{name}-\0", num_shards=len(lengths)),),
        )
        for name, lengths in LENGTHS.items()
    ),
)


def order_of(spec: str = "train", **settings: object) -> Order:
    return plan_order(TOY, spec, ReadSettings(**settings)).order  # type: ignore[arg-type]


def asked(order: Order, *queries: tuple[QueryKind, object]) -> Located:
    return locate_in(order, [Query(kind=kind, value=str(value)) for kind, value in queries])


def test_a_position_is_an_example_in_a_file_in_an_epoch() -> None:
    # Shards 0 and 2 first, in blocks of 2: 0 1 3 4 2 | 5 6 | 7 8
    order = order_of(cycle=2, block=2, epochs=2, batch=4)
    [match] = asked(order, ("position", 13)).matches
    assert (match.position, match.epoch, match.step, match.index_in_batch) == (13, 1, 3, 1)
    assert (match.id, match.filename, match.index_in_shard) == (2, "d-train-00000", 2)
    assert match.tfds_id == "d-train-00000__2"


@pytest.mark.long
def test_every_position_of_an_order_is_found_by_id_tfds_id_and_step() -> None:
    def law(settings: ReadSettings) -> None:
        for spec in ("train", "test+train[2:]", "train+train[1:3]"):
            order = plan_order(TOY, spec, changed(settings, batch=3)).order
            every = np.arange(order.num_examples)
            whole = matches_at(order, every, order.read(0, order.num_examples))
            assert asked(order, *(("position", p) for p in every)).matches == tuple(whole)
            num_steps = -(-order.num_examples // 3)
            assert asked(order, *(("step", s) for s in range(num_steps))).matches == tuple(whole)
            for match in whole[:6]:
                same = tuple(other for other in whole if other.tfds_id == match.tfds_id)
                assert asked(order, ("id", match.id)).matches == same
                assert asked(order, ("tfds-id", match.tfds_id)).matches == same

    settings = read_settings(num_examples=9, hosts=("even", "examples"))
    check_cases(settings, law, 25)


def test_answers_are_in_the_order_asked_with_a_match_for_each_epoch() -> None:
    order = order_of(cycle=1, epochs=2)
    queries: list[tuple[QueryKind, object]]
    queries = [("id", 8), ("position", 3), ("id", 0), ("tfds-id", "d-train-00002__0"), ("id", 8)]
    located = asked(order, *queries)
    assert [match.position for match in located.matches] == [8, 17, 3, 0, 9, 3, 12, 8, 17]


def test_an_example_that_is_never_handed_out_is_said() -> None:
    order = order_of("train[:5]")
    located = asked(order, ("id", 7), ("id", 2), ("tfds-id", "d-train-00003__1"))
    assert [match.id for match in located.matches] == [2]
    assert located.warnings == (
        "id 7: this order never hands it out",
        "tfds-id d-train-00003__1: this order never hands it out",
    )


def test_an_example_that_two_parts_of_a_sum_read_has_two_matches() -> None:
    located = asked(order_of("train[:3]+train[2:4]", cycle=1), ("id", 2))
    assert [match.position for match in located.matches] == [2, 3]


def test_ids_name_their_split_where_there_are_several() -> None:
    order = order_of("train+test", cycle=1)
    [match] = asked(order, ("id", "test:2")).matches
    assert (match.position, match.id, match.filename) == (11, "test:2", "d-test-00001")


def test_the_last_step_is_as_long_as_what_is_left() -> None:
    assert len(asked(order_of(batch=4), ("step", 2)).matches) == 1
    with pytest.raises(UsageError, match="step 2: the order has 2 batches of 4"):
        asked(order_of(batch=4, drop_remainder=True), ("step", 2))


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("position", 9, "position 9: the order has 9 examples, counted from 0"),
        ("position", "-1", "--position '-1': a number from 0 is needed"),
        ("position", "x", "--position 'x'"),
        ("position", "\x1b[2J", r"--position '\\x1b\[2J'"),
        ("position", 10**30, "position 10+: the order has 9"),
        ("step", 0, "step needs --batch N"),
        ("id", 9, "train has 9 examples"),
        ("tfds-id", "a", "file__index is needed"),
    ],
)
def test_what_cannot_be_located_is_refused(kind: QueryKind, value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        asked(order_of(), (kind, value))


def test_a_far_position_behind_a_buffer_is_found_both_ways() -> None:
    files = ShardFiles(pattern="d-\0", num_shards=100)
    split = Split(name="train", shard_lengths=(10**7,) * 100, files=(files,))
    # The last buffer has more examples than memory is taken for.
    for buffer in (100, 1_000_000, 1 << 28):
        settings = ReadSettings(buffer=buffer, buffer_seed=1)
        order = plan_order(Dataset(name="d", splits=(split,)), "train", settings).order
        positions = [10**9 - 1, 5 * 10**8] if buffer <= 10**6 else [3]
        ids = [match.id for match in asked(order, *(("position", p) for p in positions)).matches]
        found = asked(order, *(("id", name) for name in ids)).matches
        assert [match.position for match in found] == positions


MIXED = "sample_from_datasets([train | shuffle(3, seed=1) | repeat, test | repeat], seed=5)"


def test_how_much_of_each_source_is_handed_out_by_the_last_position() -> None:
    order = plan_order(TOY, None, {"stages": f"{MIXED} | batch(4)"}).order
    names = order.codes.names(order.read(0, 40))
    located = asked(order, ("position", 7), ("step", 9), ("position", 3))
    assert [(one.spec, one.consumed) for one in located.sources] == [
        (spec, sum(name.startswith(spec) for name in names)) for spec in ("train", "test")
    ]
    assert [match.step for match in located.matches] == [1, 9, 9, 9, 9, 0]
    assert asked(order_of(), ("position", 7)).sources == ()
    whole = plan_order(TOY, None, {"stages": f"{MIXED} | take(40)"}).order
    assert asked(whole, ("id", "test:1")).sources == ()


def test_a_step_of_stages_without_batches_is_refused() -> None:
    order = plan_order(TOY, None, {"stages": "map | repeat(2) | shuffle(2, seed=1)"}).order
    with pytest.raises(UsageError, match=r"--step: the --stages make no batches"):
        asked(order, ("step", 0))


def test_an_id_of_stages_without_end_is_refused_with_a_way_out() -> None:
    order = plan_order(TOY, None, {"stages": "repeat | shuffle(2, seed=1)"}).order
    with pytest.raises(UsageError, match=r"no end, .* 'repeat \| take\(10_000\)'"):
        asked(order, ("id", 3))
    assert asked(order, ("position", 10**6)).matches[0].epoch == 10**6 // 9


@pytest.mark.long
def test_too_many_matches_are_refused_before_the_first_one() -> None:
    order = order_of(shuffle_seed=1, epochs=10**13)
    with pytest.raises(UsageError, match=r"1 examples in .* epochs have more than 8388608"):
        locate_in(order, [Query(kind="id", value=4)])
    for epochs in (10**10, 10**6):
        several = order_of(epochs=epochs)
        with pytest.raises(UsageError, match=r"10 examples in .* epochs have more than 8388608"):
            locate_in(several, [Query(kind="id", value=number % 9) for number in range(10)])


def test_a_search_of_more_than_a_day_is_refused_with_what_it_would_take() -> None:
    """An epoch behind a buffer of a million looks at two million places: 5 epochs a second."""
    data = Dataset(name="d", splits=(Split(name="train", shard_lengths=(2_000_000,)),))
    settings = ReadSettings(buffer=1_000_000, buffer_seed=1, epochs=1_000_000)
    order = plan_order(data, "train", settings).order
    said = "1,000,000 epochs would take about 2 days, and more than a day is refused"
    with pytest.raises(UsageError, match=said):
        locate_in(order, [Query(kind="id", value="3")])
