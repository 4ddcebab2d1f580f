"""Code of a pipeline, run by TFDS, reads in the order that is predicted."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.simulate.answer import simulate
from shardctl.verbs.simulate.view import simulate_python
from tests.cases import FUZZ, check_cases
from tests.code.pasted import read, run
from tests.golden import assert_evaluated
from tests.order.order_cases import changed
from tests.order.toy_pipelines import Case, Toys, cases, predicted, shuffled_paths
from tests.tfds_datasets import build_dataset

Drawn = tuple[Case, int, int, int]


def code_of(dataset: Dataset, spec: str | None, settings: ReadSettings, **shown: Any) -> str:
    return "".join(simulate_python(simulate(dataset, spec, settings, **shown)))


def check_code(toys: Toys, drawn: Drawn) -> int:
    """Run the code of a pipeline, and compare what it reads in one of its passes."""
    case, pass_index, skip, take = drawn
    toy, settings = toys[case.toy], case.settings
    if case.file_order is not None:
        settings = changed(settings, file_order=tuple(shuffled_paths(toy, case.file_order)))
    pass_index = 0 if settings.repeat_files else pass_index
    order = predicted(toy, case, changed(settings, pass_index=pass_index))
    if order is None:
        return 0
    total = order.num_examples
    skip %= total + 1
    shown = {"skip": skip, "take": take}
    if settings.file_order is not None:  # for which there is no code
        return 0
    text = code_of(toy.dataset, case.spec, changed(settings, pass_index=pass_index), **shown)
    expected = [name.rpartition("/")[2] for name in order.codes.tfds_ids(order.read(0, total))]
    made = run([text])
    for _ in range(pass_index):
        read(made["ds"])
    assert read(made["ds"]) == expected, text
    last = text.splitlines()[-1]
    if last.startswith("# ds."):  # what simulate shows, as the comment has it
        made = run([text])
        for _ in range(pass_index):
            read(made["ds"])
        shown_ids = read(eval(last.removeprefix("# "), made))
        assert shown_ids == expected[skip : skip + take], text
    return 1


DRAWN = st.tuples(cases(), st.sampled_from([0, 0, 0, 1, 2]), st.integers(0, 50), st.integers(0, 30))


def test_code_reads_in_the_order_that_is_predicted(toys: Toys) -> None:
    assert check_cases(DRAWN, lambda drawn: check_code(toys, drawn), 3) >= 2


@pytest.mark.fuzz
def test_code_reads_in_the_order_that_is_predicted_fuzzed(toys: Toys) -> None:
    check_cases(DRAWN, lambda drawn: check_code(toys, drawn), FUZZ // 4)


def code(spec: str, settings: ReadSettings, skip: int = 0, take: int = 20, **facts: Any) -> str:
    """Return the code of a pipeline of two splits."""
    files = (ShardFiles(pattern="d-\0", num_shards=2),)
    train = Split(name="train", shard_lengths=(3, 3), files=files)
    test = Split(name="test", shard_lengths=(4,))
    dataset = Dataset(name="toy", version="1.0.0", splits=(train, test), **facts)
    return code_of(dataset, spec or None, settings, skip=skip, take=take)


def test_code_is_this() -> None:
    assert_evaluated(globals(), "pipelines")


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path / "a'b\"c); import os #", splits={"train": [2, 3]})
    here = str(folder)
    files = ShardFiles(data_dir=here, pattern="toy-train.tfrecord-\0-of-00002", num_shards=2)
    train = Split(name="train", shard_lengths=(2, 3), files=(files,))
    dataset = Dataset(name='t"oy\nimport os; os.x()', splits=(train,), data_dir=here)
    settings = ReadSettings(reverse=True, cycle=1)
    text = code_of(dataset, "train", settings)
    made = run([text])
    assert [name[-4:] for name in read(made["ds"])] == ["2__0", "2__1", "2__2", "2__0", "2__1"]
    assert [type(node) for node in ast.walk(ast.parse(text))].count(ast.Import) == 1
    nowhere = replace(dataset, data_dir=None, splits=(replace(train, files=()),))
    names = [
        node.value
        for node in ast.walk(ast.parse(code_of(nowhere, "train", ReadSettings())))
        if isinstance(node, ast.Constant)
    ]
    assert dataset.name in names


@pytest.mark.parametrize(
    ("spec", "settings", "said"),
    [
        ("train[3:3]", ReadSettings(), "'train[3:3]' reads no examples, and as_dataset refuses"),
        ("train[:1]", ReadSettings(host=Host(index=1, count=2)), "'train[:1]': host 1/2 by even"),
    ],
)
def test_what_reads_nothing_has_no_code(
    toys: Toys, spec: str, settings: ReadSettings, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        code_of(toys["plain"].dataset, spec, settings)
    assert str(refused.value).startswith(said)
    # TFDS hands out nothing, and shares by examples, all the same.
    nothing = ReadSettings(host=Host(index=1, count=2), host_by="examples")
    assert read(run([code_of(toys["plain"].dataset, "train[:1]", nothing)])["ds"]) == []
