"""dataset_info.json reads as TFDS reads it; the places where we differ from TFDS are one table."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.base.tfds_rules import TEMPLATE_VARIABLES
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError
from shardctl.metadata.tfds_metadata import dataset_from_info, read_tfds_folder
from tests.cases import FUZZ, check_cases, fuzzed
from tests.golden import assert_answers
from tests.strategies import Recipe, documents, error_line, recipes
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset

GOLDEN = Path(__file__).parent / "golden"
INFO: dict[str, Any] = {
    "name": "toy",
    "version": "1.0.0",
    "fileFormat": "tfrecord",
    "moduleName": "toy",
    "splits": [
        {
            "name": "train",
            "shardLengths": ["3", "0", "5"],
            "numBytes": "120",
            "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
        },
        {"name": "test", "shardLengths": ["2"]},
    ],
}
KEYS = (
    *("name", "version", "configName", "config_name", "fileFormat", "disableShuffling", "splits"),
    *("shardLengths", "shard_lengths", "numBytes", "numShards", "filepathTemplate"),
)


def changed(**fields_: Any) -> dict[str, Any]:
    info = copy.deepcopy(INFO) | fields_
    return {key: value for key, value in info.items() if value is not None}


def with_split(**fields_: Any) -> dict[str, Any]:
    info = copy.deepcopy(INFO)
    split = info["splits"][0] | fields_
    info["splits"][0] = {key: value for key, value in split.items() if value is not None}
    return info


def summary_of(dataset: Dataset) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "config": dataset.config,
        "file_format": dataset.file_format,
        "ordered": dataset.ordered,
        "splits": [
            (
                split.name,
                list(split.shard_lengths),
                split.num_bytes or 0,
                [str(Path(*map(str, split.location(i)))) for i in range(split.num_shards)],
            )
            for split in dataset.splits
        ],
    }


def summary_by_tfds(folder: Path) -> dict[str, Any]:
    import tensorflow_datasets as tfds

    info = tfds.builder_from_directory(folder).info
    return {
        "name": info.name,
        "config": info.config_name or None,
        "file_format": info.file_format.value,
        "ordered": info.disable_shuffling,
        "splits": [
            (name, split.shard_lengths, int(split.num_bytes), [str(p) for p in split.filepaths])
            for name, split in info.splits.items()
        ],
    }


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_dataset(tmp_path_factory.mktemp("toy"), with_files=False)


def put(toy: Path, info: dict[str, Any] | str) -> Path:
    text = info if isinstance(info, str) else json.dumps(info)
    (toy / "dataset_info.json").write_text(text, encoding="utf-8")
    return toy


def accepts(read: Any, folder: Path) -> bool:
    try:
        read(folder)
    except Exception:
        return False
    return True


class TestAgainstTfds:
    @fuzzed(45, FUZZ // 4)
    def test_a_dataset_tfds_wrote_reads_as_tfds_reads_it(
        self, tmp_path: Path, num_cases: int
    ) -> None:
        numbers = itertools.count()

        def check(recipe: Recipe) -> None:
            folder = build_dataset(tmp_path / str(next(numbers)), **recipe.arguments())
            dataset = read_tfds_folder(folder)
            assert summary_of(dataset) == summary_by_tfds(folder)
            assert dataset.version == recipe.version

        check_cases(recipes(WRITABLE_FORMATS), check, num_cases)

    @pytest.mark.parametrize("num_shards", [1, 99_999, 100_000, 1_234_567])
    def test_file_names_have_the_digits_tfds_gives_them(self, num_shards: int) -> None:
        from tensorflow_datasets.core import naming

        split = dataset_from_info(with_split(shardLengths=[1] * num_shards), data_dir=None).splits[
            0
        ]
        template = naming.ShardedFileTemplate(
            data_dir=Path(), dataset_name="toy", split="train", filetype_suffix="tfrecord"
        )
        for index in (0, num_shards // 2, num_shards - 1):
            assert split.filename(index) == template.relative_filepath(
                shard_index=index, num_shards=num_shards
            )

    def test_unusual_metadata_read_as_tfds_reads_them_but_where_we_say_why(self, toy: Path) -> None:
        def answer(question: str) -> str:
            folder = put(toy, eval(question, globals()))
            theirs = accepts(summary_by_tfds, folder)
            line = error_line(lambda: read_tfds_folder(folder))
            if line is not None:
                return f"{'we refuse' if theirs else 'refused'}: {line.replace(f'{folder}/', '')}"
            ours = summary_of(read_tfds_folder(folder))
            assert not theirs or ours == summary_by_tfds(folder)
            return "read" if theirs else f"TFDS refuses: {ours['splits'][0][1]}"

        assert_answers(GOLDEN / "dataset_infos.txt", answer)

    @fuzzed(60, FUZZ // 2)
    def test_templates_resolve_as_tfds_resolves_them(self, toy: Path, num_cases: int) -> None:
        def check(template: str) -> None:
            folder = put(toy, with_split(filepathTemplate=template))
            line = error_line(lambda: read_tfds_folder(folder))
            if line is None:
                assert summary_of(read_tfds_folder(folder)) == summary_by_tfds(folder)
            elif "leaves the dataset's folder" not in line and "names no file" not in line:
                assert not accepts(summary_by_tfds, folder)

        check_cases(template_texts, check, num_cases)


template_texts = st.lists(
    st.sampled_from(
        [f"{{{variable}}}" for variable in TEMPLATE_VARIABLES]
        + ["{{", "}}", "{", "}", "/", ".", "-", "%", "%2F", "x", " ", "[red]", "é", "$", "\\d"]
    ),
    min_size=1,
    max_size=8,
).map("".join)


class TestBadInput:
    @fuzzed(50, FUZZ)
    def test_nonsense_gives_a_dataset_or_one_line_of_error(self, num_cases: int) -> None:
        check_cases(nonsense, check_nonsense, num_cases)

    def test_an_error_names_the_split_the_shard_and_the_rule(self) -> None:
        def answer(question: str) -> str:
            return dataset_from_info(eval(question, globals()), data_dir=None).title

        assert_answers(GOLDEN / "dataset_info_errors.txt", answer)


nonsense = documents(KEYS) | st.builds(
    lambda info, key, value: info | {key: value},
    st.just(INFO),
    st.sampled_from(KEYS),
    documents(KEYS),
)
nonsense |= st.builds(
    lambda key, value: with_split(**{key: value}), st.sampled_from(KEYS), documents(KEYS)
)


def check_nonsense(value: Any) -> None:
    try:
        dataset = dataset_from_info(value, data_dir=None)
    except DatasetError as error:
        line = str(error)
    else:
        assert dataset.title.isprintable()
        assert all(split.name.isprintable() for split in dataset.splits)
        return
    assert line.isprintable()


class TestFolders:
    def test_a_folder_above_stands_for_the_one_version_inside(self, tmp_path: Path) -> None:
        folder = build_dataset(tmp_path, config="plain", with_files=False)
        (tmp_path / "toy" / "plain" / "2.0.0.incompleteABC").mkdir()
        (tmp_path / "toy" / "plain" / "2.0.0.incompleteABC" / "dataset_info.json").touch()
        (tmp_path / "toy" / ".config").mkdir()
        for above in (folder, folder.parent, folder.parent.parent, tmp_path):
            assert read_tfds_folder(above).data_dir == str(folder)

    def test_several_versions_are_the_choices(self, tmp_path: Path) -> None:
        for version in ("1.0.0", "2.0.0"):
            build_dataset(tmp_path, version=version, with_files=False)
        with pytest.raises(DatasetError, match=r"2 datasets; choose one: 1\.0\.0, 2\.0\.0$"):
            read_tfds_folder(tmp_path / "toy")

    def test_data_dir_is_absolute(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = build_dataset(tmp_path, with_files=False)
        monkeypatch.chdir(tmp_path)
        assert read_tfds_folder(Path("toy")).data_dir == str(folder)
