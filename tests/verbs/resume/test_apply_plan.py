from __future__ import annotations

from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.folders import with_folders
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UnpredictableOrderError
from shardctl.files.documents import to_json
from shardctl.saved.plan_file import parse_plan, plan_document
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.proof import prove
from tests.spec.host_cases import named_reads
from tests.verbs.resume.resume_cases import TOY, dataset


def test_a_plan_is_for_the_dataset_as_it_was() -> None:
    plan = resume(TOY, "train", consumed=3)
    with pytest.raises(DatasetError, match="split train was 11 examples in 3 shards, now 12 "):
        applied(plan, dataset(train=(3, 5, 4), test=(4,)))
    with pytest.raises(DatasetError, match="the lengths or names of its files changed"):
        applied(plan, dataset(train=(3, 4, 4), test=(4,)))


def test_a_plan_finds_its_files_in_a_copy_elsewhere() -> None:
    made = resume(TOY, "train", ReadSettings(cycle=1), consumed=2)
    plan = parse_plan("".join(to_json(plan_document(made))).encode(), source="plan")
    assert plan.instructions.shard_index is None
    copy = replace(TOY, data_dir="/elsewhere", version="2.0.0")
    assert applied(plan, copy).instructions.shard.tolist() == [0, 1, 2]


def two_folders() -> Dataset:
    """A split over two folders whose files have the same names."""
    files = [
        ShardFiles(data_dir=f"/{day}", pattern="toy-train-\0", num_shards=2)
        for day in ("monday", "tuesday")
    ]
    split = Split(name="train", shard_lengths=(3, 5, 2, 4), files=tuple(files))
    return Dataset(name="toy", splits=(split,))


def test_a_plan_of_an_order_that_tfds_leaves_open_is_refused() -> None:
    """As one that an older version made; what a log leaves has no order to keep."""
    parts = [
        Split(
            name=name,
            shard_lengths=(4,),
            files=(ShardFiles(data_dir=f"/{name}", pattern=f"d-{name}-\0", num_shards=1),),
        )
        for name in ("test", "train")
    ]
    folders = Dataset(name="d", splits=tuple(parts))
    made = resume(folders, "test+train", ReadSettings(cycle=1), consumed=2)
    assert applied(made, folders) is made
    with pytest.raises(UnpredictableOrderError, match=r"as in 'test\+train'"):
        applied(replace(made, spec="all"), folders)
    unseen = resume_unseen(folders, "all", seen=[2])
    assert applied(unseen, folders) is unseen
    assert prove(folders, unseen, seen=[2]).holds


def test_files_of_one_name_are_told_apart_by_their_place() -> None:
    made = resume(with_folders(two_folders()), "train", ReadSettings(cycle=1), consumed=4)
    text = "".join(to_json(plan_document(made)))
    assert '"take": 4, "examples_in_shard": 5, "shard_index": 1}' in text
    plan = applied(parse_plan(text.encode(), source="plan"), two_folders())
    assert plan.instructions.shard.tolist() == [1, 2, 3]
    assert [i.first_id for i in plan.file_instructions] == [3 + 1, 8, 10]
    assert {i.filename for i in plan.file_instructions} == {"toy-train-00000", "toy-train-00001"}


def test_an_instruction_that_fits_no_file_is_refused() -> None:
    plan = resume(TOY, "train", ReadSettings(cycle=1), consumed=2)
    lengths = named_reads(("toy-train-00000", 2, 1), lengths=(4,))
    with pytest.raises(DatasetError, match=r"the plan says 4 examples of 'toy-train-00000', .* 3"):
        applied(replace(plan, instructions=lengths), TOY)
    names = named_reads(("x", 2, 1))
    with pytest.raises(DatasetError, match="the plan reads 'x', which is not a file of 'train'"):
        applied(replace(plan, instructions=names), TOY)
    shards = named_reads(("toy-train-00000", 2, 1), ("x", 0, 1), lengths=(3, 1), shards=(0, 3))
    with pytest.raises(DatasetError, match="shard 3 of 'train', which has 3"):
        applied(replace(plan, instructions=shards), TOY)


def test_reads_of_another_dataset_are_refused() -> None:
    """Also in a plan that was put together by hand, whose own dataset fits."""
    made = resume(TOY, "train", ReadSettings(), consumed=2)
    other = Dataset(name="other", splits=(replace(TOY.splits[0], name="train", files=()),))
    strange = replace(made.instructions, files=other)
    with pytest.raises(DatasetError, match="the plan's files are not those of"):
        applied(replace(made, instructions=strange), TOY)
