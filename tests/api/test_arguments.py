"""References, paths, texts and dicts in place of values, wherever a public function takes these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl import Host, ReadSettings
from tests.golden import assert_evaluated
from tests.public_calls import CALLS, World

LAYOUT = """\
name: toy
splits:
  train: {shard_lengths: [6, 6, 6, 6]}
  test: {shard_lengths: [5, 5]}
"""
# `verify` runs TensorFlow, `verify_files` needs files, the codes of `prove` are those of a dataset.
OF_A_DATASET = [
    name
    for name, calls in CALLS.items()
    if "dataset" in calls[0].arguments(World())
    and name in shardctl.__all__
    and name not in ("Order", "verify", "verify_files", "prove", "inspect")
]


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    path = tmp_path / "toy.yaml"
    path.write_text(LAYOUT, "utf-8")
    return path


def ways(layout: Path) -> list[Any]:
    """Return what stands for the dataset of a layout file."""
    return [str(layout), layout, [layout], (str(layout), layout)]


@pytest.mark.long
@pytest.mark.parametrize("name", OF_A_DATASET)
def test_a_reference_gives_the_answer_of_its_dataset(name: str, layout: Path) -> None:
    world = World()
    world.dataset = shardctl.read_dataset(layout)
    pytest.importorskip("pandas")
    for call in CALLS[name]:
        given = call.arguments(world)
        if "dataset" not in given or "tfds_id" in given:  # a layout names no files
            continue

        def answer(dataset: Any, call: Any = call) -> str:
            found = call(world, dataset=dataset)
            rows = found.to_pandas().to_dict() if hasattr(found, "to_pandas") else None
            return f"{found!r} {rows}"

        expected = answer(world.dataset)
        for way in ways(layout):
            assert answer(way) == expected


def test_several_references_are_one_dataset(tmp_path: Path) -> None:
    for name in ("a", "b"):
        text = "name: toy\nsplits: {train: {shard_lengths: [3, 4]}}\n"
        (tmp_path / f"{name}.yaml").write_text(text, "utf-8")
    refs: list[str | Path] = [tmp_path / "a.yaml", str(tmp_path / "b.yaml")]
    assert shardctl.plan(refs, "train").plans[0].num_examples == 14
    assert shardctl.read_dataset(*refs).identity == shardctl.plan(refs).dataset.identity


@pytest.mark.parametrize("wrong", [[], [3], ["mnist", None], {"mnist": 1}, {"mnist"}, b"mnist"])
def test_what_is_no_reference_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(shardctl.UsageError, match=r"^dataset=.*a reference as .mnist., a path"):
        shardctl.plan(wrong)


def test_a_reference_that_leads_nowhere_is_an_error_of_the_dataset() -> None:
    with pytest.raises(shardctl.DatasetError, match="mnist"):
        shardctl.simulate("mnits")


def test_a_host_is_written_as_text_wherever_it_is_taken() -> None:
    host = Host(index=1, count=3)
    assert ReadSettings(host="1/3") == ReadSettings(host=host)  # type: ignore[arg-type]
    texts, values = (shardctl.plan("mnist", host=one).plans for one in ("1/3", host))
    assert (repr(texts[0]), texts[0].host) == (repr(values[0]), host)
    for wrong, said in (("3/3", "hosts count from 0 to 2"), ("1", "is not I/N"), (1, "a host as")):
        with pytest.raises(shardctl.UsageError, match=f"^host=.*{said}"):
            shardctl.plan("mnist", host=wrong)  # type: ignore[arg-type]


def test_settings_are_a_dict_of_their_values() -> None:
    given = {"shuffle_seed": 3, "host": "1/4", "batch": 2, "pass": 1, "drop-remainder": True}
    host = Host(index=1, count=4)
    settings = ReadSettings(
        shuffle_seed=3, cycle=4, host=host, batch=2, pass_index=1, drop_remainder=True
    )
    found = shardctl.simulate("mnist", "train", given | {"interleave_cycle_length": 4})
    assert found.order.settings == settings
    assert shardctl.simulate("mnist").order.settings == ReadSettings()


def test_settings_that_are_wrong_are_refused_by_name() -> None:
    assert_evaluated(globals(), "wrong_settings")


def test_a_plan_is_the_path_of_its_file() -> None:
    world = World()
    path = world.file_of("plan")
    assert shardctl.read_plan(path) == shardctl.read_plan(Path(path)) == world.plan
    assert shardctl.prove(world.dataset, path) == shardctl.prove(world.dataset, world.plan)


def test_a_snapshot_is_read_back() -> None:
    world = World()
    path = world.file_of("snapshot")
    assert shardctl.read_snapshot(path) == world.pinned().snapshot
    with pytest.raises(shardctl.DatasetError, match="is a resume, not a snapshot"):
        shardctl.read_snapshot(world.file_of("plan"))
    with pytest.raises(shardctl.DatasetError):
        shardctl.read_plan(path)
