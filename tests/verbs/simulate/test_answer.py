"""Simulated orders: every figure of the TFDS determinism guide, and stretches of an order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import strategies as st

from shardctl.base.columns import stream_of
from shardctl.base.text import utf8
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.files.documents import json_line, to_csv, to_json, to_yaml
from shardctl.metadata.dataset_names import catalog_dataset
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.locate.answer import MATCH_FIELDS, locate
from shardctl.verbs.locate.view import locate_rows
from shardctl.verbs.simulate.answer import Simulation, simulate
from shardctl.verbs.simulate.view import (
    array_file,
    id_lines,
    simulate_document,
    simulate_lines,
    simulate_rows,
    tfds_id_lines,
)
from tests.cases import check_cases
from tests.draw.drawn import simulated
from tests.golden import assert_evaluated

IMAGENET = catalog_dataset("imagenet2012")
TOY = Dataset(name="d", splits=(Split.even(name="train", num_examples=10, num_shards=3),))


def ids(
    spec: str = "train", *, skip: int = 0, take: int | None = 20, **settings: object
) -> list[int]:
    assert IMAGENET is not None
    read = ReadSettings(**settings)  # type: ignore[arg-type]
    return list(map(int, simulate(IMAGENET, spec, read, skip=skip, take=take).ids()))


# What https://www.tensorflow.org/datasets/determinism prints, cell by cell.


def test_orders_are_those_of_the_guide() -> None:
    assert_evaluated(globals(), "guide_of_tfds")


def test_a_fixed_shuffle_seed_does_not_repeat_the_order_as_the_guide_has_it() -> None:
    starts = [ids(take=1, shuffle_seed=32, pass_index=index)[0] for index in range(3)]
    assert starts == [176411, 972136, 556757]
    fixed = {ids(take=1, shuffle_seed=32, pass_index=i, reshuffle=False)[0] for i in range(3)}
    assert len(fixed) == 1


def test_stages_without_end_are_shown_as_far_as_asked() -> None:
    settings = {"stages": "shuffle(4, seed=1) | repeat | batch(3)"}
    found = simulate(TOY, None, settings, skip=95, take=10)
    once = simulate(TOY, None, {"buffer": 4, "buffer_seed": 1, "epochs": 11}, skip=95, take=10)
    assert found.ids().tolist() == once.ids().tolist()
    assert repr(found).endswith("positions 95 to 104 of an endless order>")
    for take in (None, -1):
        with pytest.raises(UsageError, match=r"stages repeat without end; give --take N"):
            simulate(TOY, None, settings, take=take)


# As people and programs read it.

WRITERS: dict[str, Callable[[Simulation], Iterable[Any]]] = {
    "json": lambda simulation: to_json(simulate_document(simulation)),
    "yaml": lambda simulation: to_yaml(simulate_document(simulation)),
    "csv": lambda simulation: to_csv(simulate_rows(simulation)),
    "ids": id_lines,
    "tfds-ids": tfds_id_lines,
    "jsonl": simulate_lines,
    "npy": array_file,
}


def written(simulation: Simulation, name: str) -> bytes:
    pieces: Iterable[str | bytes | memoryview] = WRITERS[name](simulation)
    return b"".join(utf8(piece) if isinstance(piece, str) else piece for piece in pieces)


# Names that every format quotes or escapes in its own way, and runners of CI act on.
_NAMES = ["d-\0", 'a,"\0', "ä\0", "##[x]\0", "::\0", "=\0;-1", "\udcff\0", "a \0", "\0%d\0"]
_SPECS = ["train", "tä", "train+tä", "all", "train[1:]"]


def _one_by_one(simulation: Simulation) -> list[tuple[Any, ...]]:
    """Return the rows as they are found one example after the other."""
    order, rows = simulation.order, []
    codes = simulation.ids().tolist()
    for position, code in enumerate(codes, simulation.skip):
        (name,) = order.codes.ids(np.array([code]))
        (index,) = order.codes.places(np.array([code]))[0].tolist()
        split = order.dataset.splits[index]
        example_id = name if isinstance(name, int) else int(name.rpartition(":")[2])
        shard = split.shard_of(example_id)
        filename, within = split.filename(shard), example_id - split.offsets[shard]
        here = np.array([position])
        step = int(order.steps_of(here)[0][0]) if order.has_steps else None
        tfds_id = f"{filename}__{within}"
        rows.append((position, int(order.epoch_of(here)[0]), step, name, tfds_id, filename, within))
    return rows


def _yaml_ids(simulation: Simulation) -> str:
    """Return the list of ids as JSON, with a line break before every 16th of those made at once."""
    several = map(simulation.order.codes.ids, simulation.chunks())
    lines = [json_line(ids[i : i + 16])[1:-1] for ids in several for i in range(0, len(ids), 16)]
    return "ids: [" + ",\n  ".join(lines) + "]\n"


@pytest.mark.long
def test_every_format_is_what_its_own_writer_makes_of_each_row() -> None:
    def check(case: tuple[list[str], tuple[int, ...], str, dict[str, int], int]) -> None:
        names, lengths, spec, settings, skip = case
        splits = []
        for split, name in zip(("train", "tä", "x"), names, strict=True):
            files = ShardFiles(pattern=name, num_shards=len(lengths))
            splits.append(Split(name=split, shard_lengths=lengths, files=(files,)))
        dataset = Dataset(name="d", splits=tuple(splits))
        if "buffer" in settings:
            settings = {**settings, "buffer_seed": 1}
        try:
            simulation = simulate(dataset, spec, settings, skip=skip, take=None)
        except UsageError:
            return
        rows = _one_by_one(simulation)
        records = [json_line(dict(zip(MATCH_FIELDS, row, strict=True))) for row in rows]
        expected = {
            "jsonl": "".join(f"{record}\n" for record in records),
            "csv": "".join(to_csv(stream_of(MATCH_FIELDS, rows))),
            "ids": "".join(f"{row[3]}\n" for row in rows),
            "tfds-ids": "".join(f"{row[4]}\n" for row in rows),
        }
        for name, lines in expected.items():
            assert written(simulation, name) == utf8(lines), name
        ids = [row[3] for row in rows]
        assert yaml.load(written(simulation, "yaml"), yaml.CSafeLoader)["ids"] == ids
        assert written(simulation, "json").decode().endswith(f'\n  "ids": {json_line(ids)}\n}}\n')
        assert written(simulation, "yaml").decode().endswith(_yaml_ids(simulation))
        if rows:
            located = locate(dataset, spec, settings, position=[row[0] for row in rows])
            assert "".join(to_csv(locate_rows(located))) == expected["csv"]
            assert list(located.matches.records) == [
                dict(zip(MATCH_FIELDS, row, strict=True)) for row in rows
            ]

    settings = st.fixed_dictionaries(
        {}, optional={name: st.integers(1, 3) for name in ("batch", "cycle", "buffer", "epochs")}
    )
    lengths = st.lists(st.sampled_from([0, 1, 2, 12]), min_size=1, max_size=4).map(tuple)
    names = st.lists(st.sampled_from(_NAMES), min_size=3, max_size=3)
    skip = st.sampled_from([0, 0, 1, 9])
    cases = st.tuples(names, lengths, st.sampled_from(_SPECS), settings, skip)
    check_cases(cases, check, 100)


def test_huge_ids_have_all_their_digits() -> None:
    files = ShardFiles(pattern="d-\0", num_shards=2)
    split = Split(name="train", shard_lengths=(2**62, 2**62 - 9), files=(files,))
    simulation = simulate(Dataset(name="d", splits=(split,)), skip=2**63 - 11)
    assert written(simulation, "ids") == b"9223372036854775797\n9223372036854775798\n"
    last = json.loads(written(simulation, "jsonl").splitlines()[-1])
    assert last["id"] == last["position"] == 2**63 - 10
    assert last["tfds_id"] == f"d-00001__{2**62 - 10}"


def test_ids_of_several_splits_are_not_an_array() -> None:
    with pytest.raises(UsageError, match="npy holds numbers, and train\\+12 reads several"):
        list(chain(array_file(simulated("train+12"))))
