"""A reference leads to one dataset, by the rules of TFDS where TFDS has any."""

from __future__ import annotations

import ast
import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata.project_file import Project, find_project
from shardctl.metadata.reference import (
    ChosenDataset,
    NamedDataset,
    choose_dataset,
    merge_datasets,
    read_dataset,
    refs_found_again,
)
from tests.byte_sources import in_memory
from tests.cases import FUZZ, check_cases, fuzzed, some
from tests.golden import assert_answers, assert_evaluated
from tests.strategies import error_line, shard_lengths, split_names, templates
from tests.tfds_datasets import build_dataset

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    root = tmp_path / "home" / "tensorflow_datasets"
    for version in ("1.0.0", "1.2.0", "1.10.0"):
        build_dataset(root, version=version, with_files=False)
    build_dataset(root, name="other", config="plain", with_files=False)
    return tmp_path / "home"


def read(*refs: str, home: Path, cwd: Path | None = None, **env: str) -> Dataset:
    with mock.patch.dict(os.environ, {"HOME": str(home), **env}):
        return read_dataset(refs, cwd=cwd or home)


def choose(
    *refs: str, home: Path, cwd: Path | None = None, data_dir: Path | None = None, **env: str
) -> ChosenDataset:
    cwd = cwd or home
    with mock.patch.dict(os.environ, {"HOME": str(home), **env}):
        return choose_dataset(refs, project=find_project(cwd), data_dir=data_dir, cwd=cwd)


def refusal(*refs: str, home: Path, cwd: Path | None = None, **env: str) -> str:
    return some(error_line(lambda: read(*refs, home=home, cwd=cwd, **env)))


REFS = ["toy", "Toy", "toy/a", "toy/b", "toy/c", "toy:1.0.0", "toy:1.*.*", "toy:*.*.*"]
REFS += ["toy/a:2.0.0", "toy/b:1.*.0", "toy:3.0.0", "toy/a:1.2.*", "tay"]


class TestNames:
    def test_the_catalog_is_asked_last(self, home: Path) -> None:
        assert read("mnist", home=home).origin == "built-in catalog"
        assert read("MNIST:3.*.*", home=home).title == "mnist:3.0.1"
        assert read("mnist/3.0.1", home=home).title == "mnist:3.0.1"
        build_dataset(home / "tensorflow_datasets", name="mnist", with_files=False)
        assert read("mnist", home=home).title == "mnist:1.0.0"
        assert read("mnist:3.0.1", home=home).origin == "built-in catalog"

    @fuzzed(15, FUZZ // 4)
    def test_names_are_found_as_tfds_finds_them(self, tmp_path: Path, num_cases: int) -> None:
        check_cases(prepared_names, name_check(tmp_path), num_cases)

    def test_an_unknown_name_says_where_it_looked_and_what_is_close(self, home: Path) -> None:
        assert refusal("tog", home=home) == (
            f"no dataset 'tog' in {home}/tensorflow_datasets or the built-in catalog; "
            "did you mean toy?"
        )
        assert "did you mean mnist" in refusal("minst", home=home)

    def test_an_unknown_version_says_which_there_are(self, home: Path) -> None:
        line = refusal("toy:2.*.*", home=home)
        assert line.endswith("; there is: toy:1.0.0, toy:1.2.0, toy:1.10.0")
        assert refusal("mnist:9.9.9", home=home).endswith("; there is: mnist:3.0.1")


prepared_names = st.tuples(
    st.lists(
        st.tuples(
            st.sampled_from([None, "a", "b"]),
            st.sampled_from(["1.0.0", "1.2.0", "1.10.0", "2.0.0"]),
        ),
        max_size=5,
    ),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from(REFS),
)


def name_check(tmp_path: Path) -> Any:
    roots = itertools.count()

    def check(case: tuple[list[tuple[str | None, str]], str | None, str]) -> None:
        import tensorflow_datasets as tfds

        prepared, default, ref = case
        root = tmp_path / str(next(roots))
        for config, version in prepared:
            build_dataset(root, config=config, version=version, with_files=False)
        if default is not None:
            (root / "toy" / ".config").mkdir(parents=True)
            text = f'{{"default_config_name": "{default}"}}'
            (root / "toy" / ".config" / "metadata.json").write_text(text)
        builder: Any
        try:
            builder = tfds.core.read_only_builder.builder_from_files(ref, data_dir=str(root))
        except tfds.core.registered.DatasetNotFoundError:
            builder = None
        try:
            ours = read_dataset([ref], data_dir=root, cwd=tmp_path)
        except DatasetError:
            assert builder is None
        else:
            assert builder is not None
            assert ours.data_dir == str(builder.data_dir)

    return check


class TestPaths:
    def test_a_folder_is_read_and_so_is_one_above_it(self, home: Path) -> None:
        root = home / "tensorflow_datasets"
        assert read("tensorflow_datasets/other", home=home).title == "other/plain:1.0.0"
        assert read(str(root / "toy" / "1.2.0"), home=home).title == "toy:1.2.0"
        assert read("~/tensorflow_datasets/toy/1.2.0", home=home).title == "toy:1.2.0"
        assert read(".", home=home, cwd=root / "toy" / "1.2.0").title == "toy:1.2.0"
        info = str(root / "toy" / "1.2.0" / "dataset_info.json")
        assert read(info, home=home).title == "toy:1.2.0"

    def test_a_folder_wins_over_a_name_where_it_holds_a_dataset(
        self, home: Path, tmp_path: Path
    ) -> None:
        cwd = tmp_path / "work"
        (cwd / "toy").mkdir(parents=True)
        assert read("toy", home=home, cwd=cwd).title == "toy:1.10.0"
        build_dataset(cwd, splits={"here": [1]}, with_files=False)
        assert [split.name for split in read("toy", home=home, cwd=cwd).splits] == ["here"]

    def test_what_leads_nowhere_says_what_would(self, home: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "notes.txt").touch()

        def answer(question: str) -> str:
            line = refusal(ast.literal_eval(question), home=home, cwd=tmp_path)
            return line.replace(str(tmp_path), "/cwd")

        assert_answers(GOLDEN / "leads_nowhere.txt", answer)
        for ref, said in (
            ("x", "no dataset 'x"),
            ("x/", "no file or folder 'x/x/"),
            ("../", "'../"),
        ):
            line = answer(repr(ref * 5000))
            assert said in line
            assert len(line) < 1500

    @fuzzed(60, FUZZ)
    def test_any_text_gives_a_dataset_or_one_line(self, home: Path, num_cases: int) -> None:
        def check(ref: str) -> None:
            if ref.strip("./~") and ".." not in ref:  # whole disks are no test data
                error_line(lambda: read(ref, home=home))

        check_cases(ref_texts, check, num_cases)


class TestRemote:
    def test_a_folder_is_one_dataset_with_the_fingerprint_of_its_copy(
        self, home: Path, tmp_path: Path
    ) -> None:
        here = build_dataset(tmp_path / "tfds", with_files=False)
        there = in_memory(tmp_path / "tfds")
        local = read(str(here), home=home)
        for ref in ("toy/1.0.0", "toy/1.0.0/", "toy", "", "toy/1.0.0/dataset_info.json"):
            found = read(f"{there}/{ref}", home=home)
            assert found.fingerprint == local.fingerprint
            assert found.data_dir == f"{there}/toy/1.0.0"
            assert found.title == "toy:1.0.0"
            assert found.example_size == local.example_size is not None
            assert found.splits[0].location(0) == (
                f"{there}/toy/1.0.0",
                "toy-train.tfrecord-00000-of-00003",
            )

    def test_a_name_is_looked_up_in_a_remote_data_dir_as_in_a_local_one(
        self, home: Path, tmp_path: Path
    ) -> None:
        root = tmp_path / "root"
        for version, config in (("1.0.0", None), ("1.2.0", None), ("2.0.0", "a"), ("1.0.0", "b")):
            build_dataset(root, version=version, config=config, with_files=False)
        (root / "toy" / "3.0.0.incompleteX").mkdir()
        (root / "toy" / "3.0.0.incompleteX" / "dataset_info.json").touch()
        there = in_memory(root)

        def answer(ref: str, place: str) -> str:
            try:
                found = read_dataset([ref], data_dir=place, cwd=home)
            except DatasetError as error:
                return str(error).replace(place, "")
            return f"{found.title} in {str(found.data_dir).replace(place, '')}"

        for ref in REFS:
            assert answer(ref, there) == answer(ref, str(root))

    def test_the_data_of_a_remote_layout_file_lie_where_it_says(self, tmp_path: Path) -> None:
        (tmp_path / "bucket").mkdir()
        for name, data_dir in (("below", "files"), ("above", "../x"), ("there", "gs://b/c/")):
            text = f"{{data_dir: '{data_dir}', splits: {{train: {{shard_lengths: [1]}}}}}}"
            (tmp_path / "bucket" / f"{name}.yaml").write_text(text)
        there = in_memory(tmp_path / "bucket")
        assert read(f"{there}/below.yaml", home=tmp_path).data_dir == f"{there}/files"
        above = there.removesuffix("bucket") + "x"
        assert read(f"{there}/above.yaml", home=tmp_path).data_dir == above
        assert read(f"{there}/there.yaml", home=tmp_path).data_dir == "gs://b/c"
        assert read(f"{there}/there.yaml", home=tmp_path).name == "there"

    def test_nothing_is_asked_of_a_network_where_disks_alone_may_be(self, home: Path) -> None:
        there = in_memory(home / "tensorflow_datasets")
        for refs, env in (([f"{there}/toy/1.0.0"], {}), (["other"], {"TFDS_DATA_DIR": there})):
            with pytest.raises(DatasetError), mock.patch.dict(os.environ, env):
                choose_dataset(refs, project=Project(), data_dir=None, cwd=home, on_disk=True)


ref_texts = st.text(max_size=30) | st.lists(
    st.sampled_from(["toy", "mnist", "/", ":", "1.0.0", "*", "@", ".", "..", "~", "//", "\0", "["]),
    max_size=8,
).map("".join)


class TestChoice:
    def test_each_source_wins_over_the_next(self, home: Path, tmp_path: Path) -> None:
        work = build_dataset(tmp_path, name="folder", with_files=False)
        config = work / "shardctl.yaml"
        config.write_text("dataset: toy:1.2.0")
        ref = "other/plain"
        chosen = choose("toy", home=home, cwd=work, SHARDCTL_DATASET=ref)
        assert (chosen.dataset.title, chosen.note, chosen.source) == ("toy:1.10.0", None, "option")
        chosen = choose(home=home, cwd=work, SHARDCTL_DATASET=ref)
        assert (chosen.dataset.title, chosen.source) == ("other/plain:1.0.0", "environment")
        assert choose(home=home, cwd=work).dataset.title == "toy:1.2.0"
        config.unlink()
        assert choose(home=home, cwd=work, SHARDCTL_DATASET="").dataset.title == "folder:1.0.0"
        chosen = choose(home=home, cwd=work.parent)
        assert chosen.dataset.title == "imagenet2012:5.1.0"
        assert chosen.note == (
            "no dataset chosen: using the built-in imagenet2012 layout; choose one with --dataset"
        )

    def test_paths_in_a_config_start_from_its_folder(self, home: Path, tmp_path: Path) -> None:
        project = tmp_path / "project"
        (project / "deep" / "er").mkdir(parents=True)
        build_dataset(project / "data", name="mine", with_files=False)
        build_dataset(project / "data", name="yours", splits={"more": [1]}, with_files=False)
        (project / "shardctl.yaml").write_text("dataset: [data/mine, yours]\ndata_dir: data")
        chosen = choose(home=home, cwd=project / "deep" / "er")
        assert [split.name for split in chosen.dataset.splits] == ["train", "more"]

    def test_a_fallback_replaces_the_default_alone(self, home: Path) -> None:
        named = NamedDataset(refs=("toy:1.2.0",), folder=home, said_by="order.yaml")

        def title(*refs: str, project: Project) -> tuple[str, str | None]:
            with mock.patch.dict(os.environ, {"HOME": str(home)}):
                chosen = choose_dataset(refs, project=project, cwd=home, fallback=named)
            return chosen.dataset.title, chosen.note

        assert title(project=Project()) == ("toy:1.2.0", None)
        assert title("toy:1.0.0", project=Project()) == ("toy:1.0.0", None)
        there = Project(path=home / "shardctl.yaml", dataset=("other/plain",))
        assert title(project=there) == ("other/plain:1.0.0", None)

    def test_errors_say_where_the_reference_came_from(self, home: Path, tmp_path: Path) -> None:
        line = some(error_line(lambda: choose(home=home, SHARDCTL_DATASET="nix")))
        assert line.startswith("SHARDCTL_DATASET: no dataset 'nix'")
        (tmp_path / "shardctl.yaml").write_text("dataset: nix")
        line = some(error_line(lambda: choose(home=home, cwd=tmp_path)))
        assert line.startswith(f"{tmp_path}/shardctl.yaml: no dataset 'nix'")


def test_references_are_kept_as_another_machine_finds_them(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    build_dataset(tmp_path / "a", name="toy", with_files=False)
    (tmp_path / "x.yaml").write_text("splits: {train: {shard_lengths: [1]}}")

    def answer(question: str) -> str:
        refs, folder = ast.literal_eval(question)
        return repr(refs_found_again(refs, cwd=tmp_path, folder=Path(folder)))

    assert_answers(GOLDEN / "found_again.txt", answer)


# Several datasets read as one.


def split(name: str, folder: str, *lengths: int, num_bytes: int | None = None) -> Split:
    return Split(
        name=name,
        shard_lengths=lengths,
        files=(ShardFiles(data_dir=folder, pattern=f"d-{name}-\0", num_shards=len(lengths)),),
        num_bytes=num_bytes,
    )


MON = Dataset(
    name="mon", version="1.0.0", splits=(split("train", "/mon", 3, 0), split("test", "/mon", 1))
)
TUE = Dataset(
    name="tue", version="2.0.0", splits=(split("extra", "/tue", 2), split("train", "/tue", 5))
)


def test_splits_of_one_name_join_where_they_first_appear() -> None:
    both = merge_datasets([MON, TUE])
    assert [(s.name, s.shard_lengths) for s in both.splits] == [
        ("train", (3, 0, 5)),
        ("test", (1,)),
        ("extra", (2,)),
    ]
    train = both.split("train")
    assert [train.location(shard) for shard in range(3)] == [
        ("/mon", "d-train-00000"),
        ("/mon", "d-train-00001"),
        ("/tue", "d-train-00000"),
    ]


def test_the_first_dataset_gives_the_name_the_version_and_the_order() -> None:
    assert merge_datasets([MON, TUE]).version == "1.0.0"
    assert merge_datasets([MON, TUE]).title == "mon:1.0.0 + tue:2.0.0"
    assert merge_datasets([MON, MON]).title == "mon:1.0.0"
    ordered = replace(TUE, ordered=True)
    assert merge_datasets([ordered, MON]).ordered
    assert not merge_datasets([MON, ordered]).ordered


def test_sizes_add_up_and_files_of_two_kinds_are_refused() -> None:
    def together(sizes: tuple[int | None, ...]) -> int | None:
        parts = [
            Dataset(name="d", splits=(split("train", f"/{i}", 1, num_bytes=size),))
            for i, size in enumerate(sizes)
        ]
        return merge_datasets(parts).splits[0].num_bytes

    assert_evaluated(globals(), "not_one", together)


def test_the_same_reference_twice_is_read_once(home: Path) -> None:
    # `builder_from_directories` keys its folders by their text.
    assert read("toy", "toy", home=home) == read("toy", home=home)


several_parts = st.lists(
    st.tuples(st.dictionaries(split_names, shard_lengths(), min_size=1, max_size=3), templates),
    min_size=1,
    max_size=4,
)


@fuzzed(15, FUZZ // 4)
def test_several_folders_read_as_tfds_reads_them(tmp_path: Path, num_cases: int) -> None:
    roots = itertools.count()

    def check(parts: list[tuple[dict[str, tuple[int, ...]], str | None]]) -> None:
        import tensorflow_datasets as tfds

        folders = [
            build_dataset(
                tmp_path / str(next(roots)), splits=splits, template=template, with_files=False
            )
            for splits, template in parts
        ]
        ours = read_dataset([str(folder) for folder in folders], cwd=tmp_path)
        theirs = tfds.builder_from_directories([str(folder) for folder in folders]).info
        assert {
            split.name: (
                list(split.shard_lengths),
                split.num_bytes or 0,
                [str(Path(*map(str, split.location(i)))) for i in range(split.num_shards)],
            )
            for split in ours.splits
        } == {
            name: (split.shard_lengths, int(split.num_bytes), [str(p) for p in split.filepaths])
            for name, split in theirs.splits.items()
        }
        in_order = dict.fromkeys(name for splits, _ in parts for name in splits)
        assert [split.name for split in ours.splits] == list(in_order)
        assert (ours.name, ours.version) == (theirs.name, str(theirs.version))

    check_cases(several_parts, check, num_cases)
