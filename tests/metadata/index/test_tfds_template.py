"""How files are named for TFDS, and as patterns in layouts."""

from __future__ import annotations

from shardctl import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.metadata.index.count import Counts
from shardctl.metadata.index.index import ArrangedFiles
from shardctl.metadata.index.listing import Listing
from shardctl.metadata.index.names import arrange
from shardctl.metadata.index.tfds_metadata import patterned, plan_tfds_metadata
from shardctl.records.contents import Damage, FileContents
from shardctl.stores.store import StoredFile
from tests.golden import assert_evaluated


def planned(
    *names: str, folder: str = "/d", data_dir: str = "/d", split: str = "train", **fields: object
) -> str | None:
    files = ShardFiles(data_dir=data_dir, names=names, num_shards=len(names))
    dataset = Dataset(
        name="toy",
        splits=(Split(name=split, shard_lengths=(1,) * len(names), files=(files,)),),
        data_dir=data_dir,
        **fields,  # type: ignore[arg-type]
    )
    return plan_tfds_metadata(dataset, folder, "1.0.0").splits[0].template


def arranged(*names: str) -> ArrangedFiles:
    files = [StoredFile(path=f"gs://b/d/{name}", num_bytes=9, version="etag:x") for name in names]
    return ArrangedFiles(
        arrange(Listing(root="gs://b/d", files=files), splits={"train": "*"}), "tfrecord"
    )


def counts(*lengths: int, unsettled: tuple[int, ...] = ()) -> Counts:
    contents = [None if n < 0 else FileContents(num_records=n) for n in lengths]
    return Counts(contents=contents, unsettled=set(unsettled))


def many(text: str, num_shards: int = 3) -> list[str]:
    return [text.format(at, num_shards) for at in range(num_shards)]


def pattern(names: list[str]) -> str | None:
    files = patterned(names)
    assert files is None or list(files) == names
    return None if files is None else files.pattern.replace("\0", "#")


def test_templates_and_patterns_say_just_these_names() -> None:
    assert_evaluated(globals(), "templates")


def test_broken_files_are_left_out_with_their_names_and_versions() -> None:
    found = counts(2, -1, 4, unsettled=(2,))
    found.fail(1, FileContents(num_records=None, damage=Damage(kind="cut", text="cut")))
    answer = arranged("x", "y", "z").index(found, keep_going=True, problems=(), seconds=0)
    (split,) = answer.splits
    assert (split.split.shard_lengths, split.split.filenames) == ((2, 4), ("x", "z"))
    assert list(split.versions) == ["etag:x", ""]
    assert [(one.path, one.finding.split) for one in answer.broken] == [("y", "train")]
