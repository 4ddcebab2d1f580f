"""How files are named for TFDS, and as patterns in layouts."""

from __future__ import annotations

from shardctl import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.metadata.index.planned_metadata import patterned, plan_tfds_metadata
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


def many(text: str, num_shards: int = 3) -> list[str]:
    return [text.format(at, num_shards) for at in range(num_shards)]


def pattern(names: list[str]) -> str | None:
    files = patterned(names)
    assert files is None or list(files) == names
    return None if files is None else files.pattern.replace("\0", "#")


def test_templates_and_patterns_say_just_these_names() -> None:
    assert_evaluated(globals(), "templates")
