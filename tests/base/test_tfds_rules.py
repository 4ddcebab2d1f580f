"""Constants of TensorFlow, TFDS and Keras, as the installed ones have them; what pip is told."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shardctl
from shardctl.base import tfds_rules as rules


def _header(tf: Any, name: str) -> str:
    """Return the text of one of TensorFlow's headers."""
    include = Path(tf.sysconfig.get_include())
    paths = (include / "xla/tsl/lib" / name, include / "tsl/lib" / name)  # up to 2.17 the second
    return next(path for path in paths if path.exists()).read_text()


def _number(text: str, name: str) -> int:
    match = re.search(rf"\b{name} = (0x[0-9a-fA-F]+|\d+)", text)
    assert match is not None, name
    return int(match[1], 0)


def test_the_reader_has_the_constants_of_tfds() -> None:
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core import constants, naming, reader

    cycle = reader._get_default_interleave_cycle_length
    assert cycle(disable_shuffling=False) == rules.DEFAULT_CYCLE
    assert cycle(disable_shuffling=True) == rules.ORDERED_CYCLE
    assert tfds.ReadConfig().interleave_block_length == rules.DEFAULT_BLOCK
    made = reader._make_id("file", 7).numpy().decode()
    assert made == f"file{rules.TFDS_ID_SEPARATOR}7"
    assert naming.DEFAULT_FILENAME_TEMPLATE == rules.DEFAULT_TEMPLATE
    assert {*naming._VAR_REGEX_MAPPING} == {*rules.TEMPLATE_VARIABLES}
    assert naming._DEFAULT_NUM_DIGITS_FOR_SHARDS == rules.MIN_SHARD_DIGITS
    assert constants.DATASET_INFO_FILENAME == rules.DATASET_INFO_FILENAME


@pytest.mark.parametrize("excess", [0, 1])
def test_tfds_caches_up_to_so_many_bytes(excess: int) -> None:
    import tensorflow_datasets as tfds

    splits = {"train": SimpleNamespace(num_shards=1)}
    info = SimpleNamespace(dataset_size=rules.AUTOCACHE_BYTES + excess, splits=splits)
    should_cache: Any = tfds.core.DatasetBuilder._should_cache_ds
    cached = should_cache(SimpleNamespace(info=info), "train", False, tfds.ReadConfig())
    assert cached == (not excess)


def test_the_file_formats_are_those_of_tfds() -> None:
    from tensorflow_datasets.core import file_adapters

    formats = file_adapters.FileFormat
    assert tuple(form.value for form in formats) == rules.FILE_FORMATS
    assert file_adapters.DEFAULT_FILE_FORMAT.value == rules.DEFAULT_FILE_FORMAT
    random_access = {form.value for form in formats.with_random_access()}
    assert random_access == {*rules.RANDOM_ACCESS_FORMATS}
    assert file_adapters.ParquetFileAdapter._BATCH_SIZE == rules.PARQUET_BATCH


def test_seeds_and_philox_have_the_constants_of_tensorflow(tf: Any) -> None:
    from tensorflow.python.framework import random_seed

    assert random_seed.DEFAULT_GRAPH_SEED == rules.DEFAULT_GRAPH_SEED
    assert random_seed._MAXINT32 == rules.SEED_MODULUS
    assert tf.data.UNKNOWN_CARDINALITY == rules.WHOLE_DATASET
    text = _header(tf, "random/philox_random.h")
    for name, constants in (("M4x32", rules.PHILOX_MULTIPLIERS), ("W32", rules.PHILOX_KEY_STEPS)):
        assert tuple(_number(text, f"kPhilox{name}{letter}") for letter in "AB") == constants
    assert _number(text, "kResultElementCount") == rules.PHILOX_SAMPLES_PER_BLOCK
    # One round an unrolled call: the key is raised between the rounds.
    body = text[text.index("ResultType operator()()") :]
    assert body[: body.index("SkipOne")].count("ComputeSingleRound(") == rules.PHILOX_ROUNDS


def test_records_are_framed_as_tensorflow_writes_them(tf: Any, tmp_path: Path) -> None:
    path = tmp_path / "records"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"12345")
    framing = rules.TFRECORD_HEADER_BYTES + rules.TFRECORD_FOOTER_BYTES
    assert path.stat().st_size == 5 + framing
    assert path.read_bytes()[rules.TFRECORD_HEADER_BYTES :].startswith(b"12345")
    assert _number(_header(tf, "hash/crc32c.h"), "kMaskDelta") == rules.CRC32C_MASK_DELTA


@pytest.mark.long
def test_every_constant_is_used_and_says_its_source() -> None:
    path = Path(rules.__file__)
    package = Path(shardctl.__file__).parent
    others = (file.read_text() for file in package.rglob("*.py") if file != path)
    used = {word for text in others for word in re.findall(r"\w+", text)}
    blocks = path.read_text().partition("# The reader and its interleave.")[2].split("\n\n")
    for block in blocks:
        names = re.findall(r"^([A-Z][A-Z0-9_]+) = ", block, re.MULTILINE)
        if names:
            assert re.search(r"# .*(TFDS core|tensorflow|keras|xla)/", block), names
        for name in names:
            assert name in used, name


CONSTRAINTS = Path(__file__).parents[1] / "versions"
GUIDE = Path(shardctl.__file__).parent / "guide" / "install.md"


@pytest.mark.parametrize("line", rules.LINES, ids=lambda line: line.name)
def test_pip_is_told_the_same_in_constraints_files_and_in_the_guide(
    line: rules.TensorflowLine,
) -> None:
    text = (CONSTRAINTS / f"tensorflow-{line.name}.txt").read_text("utf-8")
    stated = re.findall(r"^([^#\s]\S*)  # \w.*$", text, re.MULTILINE)
    assert stated == [f"tensorflow=={line.name}.*", rules.TFDS, *line.besides]
    assert len(text.splitlines()) == len(stated)  # with nothing else, and no line without a reason
    row = re.search(rf"^\| {re.escape(line.name)} \|.*$", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert row is not None
    wanted = rules.install_command(line.name).partition(" install ")[2]
    assert f"`pip install {wanted}`" in row[0]
    assert f"| {', '.join(line.pythons)} |" in row[0]


def test_lines_are_in_order_and_the_last_is_the_newest_known() -> None:
    names = {path.name for path in CONSTRAINTS.glob("*.txt")}
    assert names == {f"tensorflow-{line.name}.txt" for line in rules.LINES}
    numbers = [tuple(map(int, line.name.split("."))) for line in rules.LINES]
    assert numbers == sorted(set(numbers))
    newest = numbers[-1]
    assert not rules.is_newer_than_known(rules.LINES[-1].name + ".99")
    assert rules.is_newer_than_known(f"{newest[0]}.{newest[1] + 1}.0rc1")
    assert rules.is_newer_than_known(f"{newest[0] + 1}.0")
    assert not rules.is_newer_than_known("1.99")
    assert rules.line_of("") is None
    assert not rules.is_newer_than_known("nightly")
    assert " install -U 'tensorflow>=2.16' " in rules.install_command("nightly")
