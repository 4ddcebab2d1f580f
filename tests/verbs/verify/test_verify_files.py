"""Every file of a dataset read: what is sound is silent, what is not is named."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.dataset_names import catalog_dataset
from shardctl.metadata.index.index import index, index_document
from shardctl.metadata.layouts import read_layout_file
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds.verifying.verify import verify, verify_plan
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.verify.verify_files import FilesVerification, exists, verify_files
from tests.cases import check_cases, counted, few_or_many, seed_of_test
from tests.golden import listed
from tests.record_files import header
from tests.records.tar_files import archive
from tests.strategies import Recipe, recipes
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset

LENGTHS = {"train": [3, 0, 5, 40], "test": [2]}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return build_dataset(tmp_path, splits=LENGTHS)


def check(folder: Path, *splits: str) -> FilesVerification:
    return verify_files(read_tfds_folder(folder), *splits)


def found(folder: Path, *splits: str) -> list[tuple[str, str | None, str]]:
    answer = check(folder, *splits)
    assert answer.equal == (not answer.findings)
    assert all((finding.reason or "").isprintable() for finding in answer.findings)
    return [(finding.kind, finding.split, finding.filename) for finding in answer.findings]


def file_of(folder: Path, shard: int, split: str = "train") -> Path:
    (file,) = folder.glob(f"toy-{split}.*-{shard:05d}-of-*")
    return file


@few_or_many(6, 40)
def test_what_tfds_wrote_is_sound(tmp_path: Path, num_cases: int) -> None:
    def law(recipe: Recipe) -> None:
        arguments = recipe.arguments()
        folder = tmp_path / "toy"
        shutil.rmtree(folder, ignore_errors=True)
        dataset = read_tfds_folder(build_dataset(folder, **arguments))
        if not any(split.num_shards for split in dataset.splits):
            with pytest.raises(UsageError, match="nothing to verify"):
                verify_files(dataset)
            return
        answer = verify_files(dataset)
        short = [found.kind for found in answer.findings]
        if dataset.file_format == "parquet":
            # TFDS writes shards of more than 100 examples too short.
            lengths = [n for split in dataset.splits for n in split.shard_lengths]
            assert len(short) == sum(length > 100 for length in lengths)
        else:
            assert short == []
            for split, read in zip(dataset.splits, answer.splits, strict=True):
                assert read.num_records == split.num_examples
                assert read.num_files_read == read.num_files == split.num_shards
                assert read.num_bytes_read == read.num_bytes

    check_cases(recipes(WRITABLE_FORMATS), law, num_cases)


@pytest.mark.parametrize("file_format", WRITABLE_FORMATS)
def test_what_was_read_is_told(tmp_path: Path, file_format: str) -> None:
    folder = build_dataset(tmp_path, splits=LENGTHS, file_format=file_format)
    told = Counter[str]()
    answer = verify_files(
        read_tfds_folder(folder), watch=lambda what, done, total: told.update({what: 1})
    )
    train, test = answer.splits
    sizes = [file.stat().st_size for file in folder.glob("toy-train*")]
    assert (train.name, train.num_examples, train.num_records) == ("train", 48, 48)
    assert (train.num_files, train.num_files_read) == (4, 4)
    assert (train.num_bytes, train.num_bytes_read) == (sum(sizes), sum(sizes))
    assert (test.num_records, answer.num_files) == (2, 5)
    assert answer.checked == {"decoded" if file_format == "parquet" else "checksums": 5}
    assert bool(answer.notes) == (file_format != "tfrecord")
    assert set(told) == {"bytes"}


def test_splits_are_chosen(toy: Path) -> None:
    file_of(toy, 0, "test").write_bytes(b"")
    assert found(toy, "train") == []
    assert [split.name for split in check(toy, "test", "train", "test").splits] == ["test", "train"]
    assert found(toy, "test") == [("count", "test", "toy-test.tfrecord-00000-of-00001")]


def flip(byte: int) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        data = bytearray(file.read_bytes())
        data[byte] ^= 1
        file.write_bytes(data)

    return damage


def to_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def to_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def to_link(target: str) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        file.unlink()
        file.symlink_to(target)

    return damage


@pytest.mark.parametrize(
    ("damage", "kind"), listed(Path(__file__).with_name("damaged.txt"), globals())
)
def test_one_damaged_file_is_named(toy: Path, damage: Callable[[Path], None], kind: str) -> None:
    damage(file_of(toy, 2))
    assert found(toy) == [(kind, "train", "toy-train.tfrecord-00002-of-00004")]


@pytest.mark.parametrize(
    ("compression", "pack"), [("GZIP", gzip.compress), ("ZLIB", zlib.compress)]
)
def test_compressed_files_are_sound_where_the_dataset_says_so(
    toy: Path, compression: str, pack: Callable[[bytes], bytes]
) -> None:
    train = sorted(toy.glob("toy-train*"))
    for file in train[1:]:
        file.write_bytes(pack(file.read_bytes()))
    dataset = replace(read_tfds_folder(toy), compression=compression)
    (finding,) = verify_files(dataset, "train").findings
    assert (finding.kind, finding.filename) == ("compressed", train[0].name)
    train[0].write_bytes(pack(train[0].read_bytes()))
    answer = verify_files(dataset, "train")
    assert {found.kind for found in answer.findings} == {"size"}  # the metadata are of others
    assert answer.splits[0].num_records == 48
    plain = {found.kind for found in verify_files(replace(dataset, compression=None)).findings}
    assert plain == {"compressed"}


def test_files_of_an_empty_shard_may_be_absent_and_not_full(toy: Path) -> None:
    file_of(toy, 1).unlink()
    assert found(toy) == []
    shutil.copy(file_of(toy, 0), toy / "toy-train.tfrecord-00001-of-00004")
    assert found(toy) == [("count", "train", "toy-train.tfrecord-00001-of-00004")]


def test_a_split_of_which_nothing_is_here_is_one_finding(toy: Path) -> None:
    for file in toy.glob("toy-train*"):
        file.unlink()
    (finding,) = check(toy).findings
    assert (finding.kind, finding.split, finding.expected) == ("missing", "train", 48)
    assert finding.num_files == 3
    assert finding.reason == (
        "no file of split 'train' is here: 3 files are missing, of which this is the first"
    )
    file_of(toy, 0, "test").unlink()
    assert [kind for kind, _, _ in found(toy)] == ["missing", "missing"]


def test_sound_files_of_another_size_than_the_metadata_says(toy: Path) -> None:
    info = toy / "dataset_info.json"
    document = json.loads(info.read_text())
    document["splits"][0]["numBytes"] = str(int(document["splits"][0]["numBytes"]) + 1)
    info.write_text(json.dumps(document))
    assert found(toy) == [("size", "train", "toy-train.tfrecord-00000-of-00004")]
    flip(14)(file_of(toy, 3))  # where files are damaged, that is said alone
    assert [kind for kind, _, _ in found(toy)] == ["data"]


@pytest.mark.parametrize("file_format", WRITABLE_FORMATS)
def test_files_of_random_damage_are_named(tmp_path: Path, file_format: str) -> None:
    folder = build_dataset(tmp_path, splits={"train": [9] * 8}, file_format=file_format)
    sound = {file: file.read_bytes() for file in sorted(folder.glob("toy-train*"))}
    rng = random.Random(3)
    for _ in counted(range(25)):
        expected = []
        for file, data in sound.items():
            file.write_bytes(data)
            if rng.random() < 0.3:
                file.write_bytes(data[: rng.randrange(len(data))])
                expected.append(file.name)
        named = [name for _, _, name in found(folder)]
        assert named == expected


def with_digests(folder: Path, form: str) -> Dataset:
    """Write files of a format, and return what a layout with digests says of them, read back."""
    if form == "webdataset":
        folder.mkdir()
        for shard in range(2):
            (folder / f"train-{shard:05d}.tar").write_bytes(archive([f"{i}.txt" for i in range(9)]))
    elif form == "arrow":
        folder.mkdir()
        for shard in range(2):
            table = pa.table({"x": list(range(99))})
            with pa.ipc.new_stream(folder / f"train-{shard:05d}.arrow", table.schema) as sink:
                sink.write_table(table)
    else:
        folder = build_dataset(folder, splits={"train": [9] * 2}, file_format=form)
    layout = folder.parent / "layout.json"
    layout.write_text(json.dumps(index_document(index(folder, digest=True, cache=False))))
    return read_layout_file(layout)


@pytest.mark.parametrize("form", [*WRITABLE_FORMATS, "webdataset", "arrow"])
def test_with_digests_every_flipped_bit_is_named(tmp_path: Path, form: str) -> None:
    dataset = with_digests(tmp_path / "data", form)
    answer = verify_files(dataset)
    assert answer.equal
    assert (answer.checked, answer.splits[0].checked) == ({"digest": 2}, {"digest": 2})
    assert answer.notes == ()
    folder, name = dataset.splits[0].location(1)
    file = Path(folder or "", name)
    sound, rng = file.read_bytes(), random.Random(seed_of_test())
    for bit in counted(rng.randrange(8 * len(sound)) for _ in range(70)):
        data = bytearray(sound)
        data[bit // 8] ^= 1 << bit % 8
        file.write_bytes(data)
        named = [one.filename for one in verify_files(dataset).findings]
        assert named == [name], f"bit {bit}, seed {seed_of_test()}"
    file.write_bytes(sound)  # equal bytes at another time
    assert verify_files(dataset).equal
    file.write_bytes(sound + b"\0")
    assert [one.filename for one in verify_files(dataset).findings if one.kind != "size"] == [name]
    file.unlink()
    kinds = [(one.kind, one.filename) for one in verify_files(dataset).findings]
    assert ("missing", name) in kinds


def test_two_shards_of_one_length_that_were_swapped_are_named_by_digests(tmp_path: Path) -> None:
    dataset = with_digests(tmp_path / "data", "tfrecord")
    one, other = (Path(*map(str, dataset.splits[0].location(shard))) for shard in range(2))
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    assert [found.kind for found in verify_files(dataset).findings] == ["digest"] * 2
    whole = replace(dataset, splits=(replace(dataset.splits[0], shard_digests=None),))
    answer = verify_files(whole)
    assert (answer.equal, answer.checked) == (True, {"checksums": 2})


def test_datasets_that_are_not_here_are_refused(tmp_path: Path) -> None:
    mnist = catalog_dataset("mnist")
    assert mnist is not None
    with pytest.raises(DatasetError, match=r"'mnist:3.0.1' has no files on this machine"):
        verify_files(mnist)
    (tmp_path / "l.yaml").write_text("file_format: riegeli\nsplits: {train: {shard_lengths: [1]}}")
    with pytest.raises(DatasetError, match="riegeli files are not read"):
        verify_files(read_layout_file(tmp_path / "l.yaml"))
    (tmp_path / "here").touch()
    for prefix in ("", "file://"):
        assert [exists(f"{prefix}{tmp_path}/{name}") for name in ("here", "there")] == [True, False]


# What files really hold, checked before TensorFlow opens the first of them.

LAST = "toy-train.tfrecord-00003-of-00004"


@pytest.mark.parametrize(
    ("damage", "kinds"),
    [
        (lambda file: file.write_bytes(b""), [("count", 40, 0)]),
        (lambda file: file.write_bytes(file.read_bytes() + b"rest"), [("cut", 40, 40)]),
        (flip(14), [("data", 40, 40)]),
    ],
)
def test_a_bad_file_beyond_what_is_compared_is_counted(
    toy: Path, damage: Callable[[Path], None], kinds: list[tuple[str, int, int]]
) -> None:
    damage(toy / LAST)
    answer = verify(read_tfds_folder(toy), "train", ReadSettings(cycle=1), take=3)
    assert [(f.kind, f.expected, f.found) for f in answer.files] == kinds
    assert (answer.first_difference, answer.equal) == (None, False)


def test_a_format_without_tf_data_is_counted_beside_index_ranges(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3, 0, 5]}, file_format="array_record")
    answer = verify(read_tfds_folder(folder))
    assert (answer.equal, answer.read, answer.num_files) == (True, "index ranges", 2)
    assert "as_data_source alone" in answer.notes[0]
    files = sorted(folder.glob("toy-train*"))
    shutil.copy(files[2], files[0])
    answer = verify(read_tfds_folder(folder))
    assert [(f.expected, f.found) for f in answer.files] == [(3, 5)]
    assert (answer.first_difference, answer.equal) == (None, False)


def test_every_file_that_is_read_is_counted_whole_and_once(toy: Path) -> None:
    # The third file is read by both parts of the sum; the second is empty, and nobody opens it.
    answer = verify(read_tfds_folder(toy), "train[2:5]+train[7:8]")
    assert (answer.num_files, answer.files) == (2, ())


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (to_fifo, "not-a-file"),
        (lambda file: file.write_bytes(header(2**40) + b"abc"), "too-long"),
        (lambda file: file.write_bytes(header(2**63) + b"abc"), "too-long"),
    ],
)
def test_files_that_end_tensorflow_are_not_opened(
    toy: Path, damage: Callable[[Path], None], kind: str
) -> None:
    damage(toy / LAST)
    answer = verify(read_tfds_folder(toy), take=1)
    assert [(f.filename, f.kind) for f in answer.files] == [(LAST, kind)]
    assert (answer.read, answer.first_difference, answer.equal) == ("index ranges", None, False)
    said = f"TensorFlow does not open the files, since it would hang or die at '{LAST}'"
    assert answer.notes == (said,)
    # A spec that does not read the file is read from the files.
    assert verify(read_tfds_folder(toy), "train[:3]+test").read == "files"


def test_a_folder_that_holds_none_of_the_files_is_a_finding(toy: Path) -> None:
    """Their names are as if there were five."""
    for file in toy.glob("toy-train*"):
        file.rename(toy / file.name.replace("-of-00004", "-of-00005"))
    dataset = read_tfds_folder(toy)
    reason = "no file of split 'train' is here: 3 files are missing, of which this is the first"
    plan = resume(dataset, "train", ReadSettings(), consumed=1)
    for answer in (verify(dataset, "train"), verify_plan(dataset, plan)):
        assert (answer.equal, answer.read) == (False, "index ranges")
        assert (answer.first_difference, answer.num_files) == (None, 3)
        (missing,) = answer.files
        assert (missing.kind, missing.expected, missing.found) == ("missing", 48, None)
        assert (missing.num_files, missing.reason) == (3, reason)
        assert missing.filename == "toy-train.tfrecord-00000-of-00004"
    assert reason in [file.reason for file in verify_files(dataset).findings]
    # Only what the spec reads: one of the files, none of them, or others that are here.
    (missing,) = verify(dataset, "train[:3]").files
    assert (missing.num_files, missing.reason) == (1, "missing")
    assert verify(dataset, "test").equal
    both = verify(dataset, "train+test")
    assert ([file.num_files for file in both.files], both.num_files) == ([3], 4)
    # Without metadata nothing says that the files are here.
    (toy / "dataset_info.json").unlink()
    answer = verify(dataset, "train")
    assert (answer.equal, answer.read, answer.num_files) == (True, "index ranges", 0)
    assert "not on this machine" in answer.notes[0]


@pytest.mark.parametrize("with_files", [True, False])
def test_nothing_to_verify_is_not_a_yes(tmp_path: Path, with_files: bool) -> None:
    splits = {"train": [3, 5], "none": [0]}
    dataset = read_tfds_folder(build_dataset(tmp_path, splits=splits, with_files=with_files))
    nothing: Any = pytest.raises(UsageError, match="nothing to verify: 'train")
    plan = resume(dataset, "train[:0]", ReadSettings(), consumed=0)
    with nothing:
        verify(dataset, "train[:0]")
    with nothing:
        verify(dataset, "train", ReadSettings(batch=9, drop_remainder=True))
    with nothing:
        verify_plan(dataset, plan)
    if not with_files:
        with pytest.raises(UsageError, match=r"verify: none of toy:1\.0\.0 has no exam"):
            verify_files(dataset, "none")
    ended = verify_plan(dataset, resume(dataset, "train", ReadSettings(), consumed=8))
    assert ended.notes[0].startswith("nothing is left to read")
