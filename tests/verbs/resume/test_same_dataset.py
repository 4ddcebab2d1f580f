"""The dataset of a plan or a position beside the one of today: everything that is another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.identity import DatasetIdentity, SplitSize, differences
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata.reference import merge_datasets
from shardctl.verbs.resume.apply_plan import check_same_dataset, what_changed
from tests.golden import assert_evaluated

THEN = DatasetIdentity(
    name="toy",
    config=None,
    version="1.0.0",
    file_format="tfrecord",
    data_dir=None,
    fingerprint="sha256:1",
    ordered=False,
    splits=(
        SplitSize(name="train", num_examples=11, num_shards=3),
        SplitSize(name="test", num_examples=4, num_shards=1),
    ),
)


def test_what_changed_is_said() -> None:
    assert_evaluated(globals(), "changed")


def test_a_template_that_follows_a_new_name_is_not_said() -> None:
    train = replace(THEN.splits[0], template="toy-{SHARD_INDEX}")
    then = replace(THEN, splits=(train,))
    now = replace(then, name="tiy", splits=(replace(train, template="tiy-{SHARD_INDEX}"),))
    assert what_changed(list(differences(then, now))) == ["its name was toy, now tiy"]


def test_a_layout_that_is_the_same_does_not_make_the_same_dataset() -> None:
    other = replace(TOY, name="tiy")
    assert other.fingerprint == TOY.fingerprint
    with pytest.raises(DatasetError, match=r"the plan was made for another state of toy.*now tiy"):
        check(TOY, other)
    with pytest.raises(
        DatasetError, match=r"the position was made for another state of toy:1\.0\.0"
    ):
        check_same_dataset(TOY.identity, other, "position")


def folder(path: str | None, version: str | None = "1.0.0", num_bytes: int | None = 80) -> Dataset:
    files = ShardFiles(data_dir=path, pattern="toy-train-\0-of-00002", num_shards=2)
    train = Split(name="train", shard_lengths=(3, 4), files=(files,), num_bytes=num_bytes)
    return Dataset(name="toy", version=version, data_dir=path, splits=(train,))


TOY = folder("/data/toy")


def check(then: Dataset, now: Dataset, **options: bool) -> None:
    check_same_dataset(then.identity, now, "plan", **options)


def test_another_version_or_config_is_taken_knowingly() -> None:
    for other in (
        replace(TOY, version="2.0.0"),
        replace(TOY, config="big"),
        replace(TOY, config="big", version="2.0.0"),
    ):
        check(TOY, other, allow_version=True)
        check(other, TOY, allow_version=True)
        with pytest.raises(DatasetError, match="--allow-version accepts it") as error:
            check(TOY, other)
        assert str(error.value).endswith("; --allow-version accepts it")
    # What else differs does not become the same by it, and no switch is offered.
    for wrong in ({"name": "tiy"}, {"ordered": True}, {"file_format": "riegeli"}):
        other = replace(TOY, version="2.0.0", **wrong)
        with pytest.raises(DatasetError) as refused:
            check(TOY, other, allow_version=True)
        with pytest.raises(DatasetError) as named:
            check(TOY, other)
        assert "its version was 1.0.0, now 2.0.0" in str(named.value)
        assert "version" not in str(refused.value)
        assert "allow_version" not in str(named.value)


def test_a_version_that_one_side_does_not_know_is_not_compared() -> None:
    layout = replace(TOY, version=None)
    check(layout, replace(TOY, config="big"))
    check(TOY, layout)
    with pytest.raises(DatasetError, match="its config was small, now big"):
        check(replace(layout, config="small"), replace(layout, config="big"))


def test_a_template_that_moves_the_files_is_another_one() -> None:
    """The folders below the data dir are no part of the names that the fingerprint is made of."""

    def named(pattern: str) -> Dataset:
        files = ShardFiles(pattern=pattern, num_shards=2)
        return replace(TOY, splits=(replace(TOY.splits[0], files=(files,)),))

    old, new = named("a/toy-\0-of-00002"), named("b/toy-\0-of-00002")
    assert old.fingerprint == new.fingerprint
    with pytest.raises(DatasetError) as error:
        check(old, new, allow_version=True)
    assert str(error.value).endswith(
        "its file name template of train was a/toy-{SHARD_INDEX}-of-{NUM_SHARDS}, "
        "now b/toy-{SHARD_INDEX}-of-{NUM_SHARDS}"
    )
    # Older files do not have it.
    then = replace(old.identity, splits=(replace(old.identity.splits[0], template=None),))
    check_same_dataset(then, new, "plan")


A, B = folder("/data/a"), folder("/data/b")


def moved(*datasets: Dataset) -> Dataset:
    return merge_datasets(datasets)


def test_folders_that_look_alike_are_told_apart_by_their_paths() -> None:
    assert moved(A, B).fingerprint == moved(B, A).fingerprint
    check(moved(A, B), moved(A, B))
    check(moved(A, B), moved(folder("/mnt/x/a"), folder("/mnt/x/b")))
    for other in (moved(B, A), moved(folder("/mnt/b"), folder("/mnt/a"))):
        with pytest.raises(DatasetError, match="now b, a; they are read in another order"):
            check(moved(A, B), other, allow_version=True)
    with pytest.raises(
        DatasetError, match=r"a, b, now x, y; .* cannot be told; if the order is the same"
    ):
        check(moved(A, B), moved(folder("/mnt/x"), folder("/mnt/y")))
    with pytest.raises(DatasetError, match="its folders were a, b, now a, b, c"):
        check(moved(A, B), moved(A, B, folder("/data/c")))


def test_another_version_in_one_of_the_folders_is_another_version() -> None:
    newer = replace(B, version="1.0.1")
    words = "its list of folders was toy:1.0.0, toy:1.0.0, now toy:1.0.0, toy:1.0.1; --allow"
    with pytest.raises(DatasetError, match=words):
        check(moved(A, B), moved(A, newer))
    check(moved(A, B), moved(A, newer), allow_version=True)
    with pytest.raises(DatasetError, match="in another order"):
        check(moved(A, newer), moved(newer, A), allow_version=True)


def test_one_folder_twice_has_one_order() -> None:
    twice = moved(A, A)
    check(twice, moved(folder("/mnt/a"), folder("/mnt/a")))
    then = replace(twice.identity, folders=())
    check_same_dataset(then, twice, "plan")


def test_what_older_files_do_not_say_of_folders_has_to_show_in_the_layout() -> None:
    then = replace(moved(A, B).identity, folders=())
    with pytest.raises(
        DatasetError,
        match=r"in which order folders a, b were read is not known, .* if the order is the same",
    ):
        check_same_dataset(then, moved(A, B), "plan")
    with pytest.raises(DatasetError, match="resume from its count, --consumed N"):
        check_same_dataset(then, moved(A, B), "position")
    longer = replace(B, splits=(replace(B.splits[0], shard_lengths=(3, 5)),))
    both = moved(A, longer)
    check_same_dataset(replace(both.identity, folders=()), both, "plan")
    # And the other way round: a layout that names the files of all folders as those of one.
    one = replace(moved(A, B), folders=(A,))
    with pytest.raises(DatasetError, match="its folders were a, b, now one or not known"):
        check(moved(A, B), one)


def test_text_of_files_is_made_safe() -> None:
    evil = "\x1b[31m\n::error::"
    then = moved(folder(f"/data/{evil}"), B).identity
    strange = replace(THEN, splits=(SplitSize(name=evil, num_examples=1, num_shards=1),))
    for identity in (then, strange):
        with pytest.raises(DatasetError) as error:
            check_same_dataset(identity, moved(B, A), "plan")
        assert str(error.value).isprintable()
