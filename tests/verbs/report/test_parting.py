"""Blocks and names around a difference: as hand arithmetic and `locate` say."""

from __future__ import annotations

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.verbs.diff.answer import Diff, PinnedOrder, diff
from shardctl.verbs.locate.answer import locate
from shardctl.verbs.report.compare import block_runs, neighbours
from shardctl.verbs.snapshot.answer import snapshot
from tests.verbs.diff.diff_cases import dataset_of, through_a_file


def side(dataset: Dataset, spec: str = "train", **settings: object) -> PinnedOrder:
    taken = snapshot(dataset, spec, {"cycle": 1, **settings}).snapshot
    return PinnedOrder(snapshot=through_a_file(taken), label=spec)


def runs(found: Diff) -> list[tuple[int, int, str]]:
    return [(run.start, run.stop, run.state) for run in block_runs(found)]


def test_blocks_are_the_same_up_to_the_one_that_differs() -> None:
    one = dataset_of({"train": (9_000, 9_000)})
    other = dataset_of({"train": (9_000, 9_000), "test": (1,)})
    assert runs(diff(side(one), side(other))) == [(0, 18_000, "same")]
    # In blocks of 2 from two files the orders part at position 2, in each block of 4,096.
    parted = diff(side(one, cycle=2, block=1), side(one, cycle=2, block=2))
    assert runs(parted) == [(0, 18_000, "moved")]
    # The second of 5 blocks has the 4,100 to the end of the first half.
    late = diff(side(one, "train[:4100]+train[5000:]"), side(one, "train[:4100]+train[5001:]"))
    assert runs(late) == [(0, 4096, "same"), (4096, 17_099, "moved"), (17_099, 17_100, END)]


END = "one has ended"


def test_the_end_of_the_shorter_order_is_an_edge_wherever_it_lies() -> None:
    toy = dataset_of({"train": (9_000,)})
    found = diff(side(toy, "train[:5000]"), side(toy))
    assert runs(found) == [(0, 5_000, "same"), (5_000, 9_000, END)]
    found = diff(side(toy), side(toy, "train[:5000]"))
    assert runs(found) == [(0, 5_000, "same"), (5_000, 9_000, END)]
    found = diff(side(toy, "train[1:5000]"), side(toy))
    assert runs(found) == [(0, 4_999, "moved"), (4_999, 9_000, END)]
    # They part in the first block, and agree again where the shorter one ends.
    swapped = "train[1:2]+train[0:1]+train[2:5000]"
    assert runs(diff(side(toy, swapped), side(toy))) == [
        (0, 4_096, "moved"),
        (4_096, 5_000, "same"),
        (5_000, 9_000, END),
    ]


def test_names_around_a_difference_are_those_of_locate() -> None:
    toy = dataset_of({"train": (30, 40, 50)})
    rows = neighbours(diff(side(toy, cycle=2, block=3), side(toy, cycle=2, block=4)))
    assert [row.position for row in rows] == list(range(7))
    assert [row.differs for row in rows].index(True) == 3
    for row in rows:
        for block, given, tfds_id in ((3, row.a, row.a_tfds_id), (4, row.b, row.b_tfds_id)):
            settings = {"cycle": 2, "block": block}
            (match,) = locate(toy, "train", settings, position=row.position).matches
            assert (match.id, match.tfds_id) == (given, tfds_id)


def test_an_order_that_has_ended_has_no_names() -> None:
    toy = dataset_of({"train": (9,)})
    rows = neighbours(diff(side(toy, "train[:5]"), side(toy)))
    assert [(row.position, row.a, row.b) for row in rows][3:] == [
        (5, None, 5),
        (6, None, 6),
        (7, None, 7),
        (8, None, 8),
    ]
    assert rows[3].a_tfds_id is None
    assert rows[3].b_tfds_id == "toy-train.tfrecord-00000-of-00001__5"


def test_files_without_names_have_no_tfds_ids() -> None:
    nameless = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(3, 4)),))
    rows = neighbours(diff(side(nameless), side(nameless, block=1, cycle=2)))
    assert rows
    assert {name for row in rows for name in (row.a_tfds_id, row.b_tfds_id)} == {None}


def test_files_in_several_folders_have_tfds_ids_where_the_folders_are_known() -> None:
    files = tuple(
        ShardFiles(data_dir=f"/data/{day}/d", pattern="d-\0", num_shards=1)
        for day in ("mon", "tue")
    )
    split = Split(name="train", shard_lengths=(3, 4), files=files)
    taken = snapshot(Dataset(name="toy", splits=(split,)), "train", {"cycle": 2, "block": 1})
    live = PinnedOrder(snapshot=taken.snapshot, label="now", live=taken.live)
    kept = side(taken.live.order.dataset, block=2, cycle=2)
    row = next(row for row in neighbours(diff(kept, live)) if row.differs)
    assert row.a_tfds_id is None
    (match,) = locate(
        taken.live.order.dataset, "train", {"cycle": 2, "block": 1}, position=row.position
    ).matches
    assert row.b_tfds_id == match.tfds_id


def test_no_difference_has_no_neighbours() -> None:
    toy = dataset_of({"train": (9,)})
    assert neighbours(diff(side(toy), side(toy))) == ()
