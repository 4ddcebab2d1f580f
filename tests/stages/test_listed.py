from __future__ import annotations

import pytest

from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.stages import Opaque, Read
from shardctl.stages.text import document_of, parse_stages, pipeline_of, text_of


def settings_of(text: str) -> dict[str, object]:
    """Return the settings of the reader that a text of stages begins with."""
    source = parse_stages(text).source
    assert isinstance(source, Read)
    assert source.listed
    assert source.spec is None
    return {"data": source.data, **dict(source.settings)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "list_files('d/*', seed=7) | interleave(cycle_length=4, block_length=2)",
            {"data": "d/*", "cycle": 4, "block": 2, "shuffle_files": True, "shuffle_seed": 7},
        ),
        (
            "list_files(file_pattern='d/*') | interleave(TFRecordDataset, 3)",
            {"data": "d/*", "cycle": 3, "block": 1, "shuffle_files": True},
        ),
        (
            "list_files('d/*', shuffle=False, seed=3) | interleave(tf.data.TFRecordDataset, "
            "cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)",
            {"data": "d/*", "cycle": 4, "block": 1, "shuffle_files": False},
        ),
        (
            "TFRecordDataset('d/*')",
            {"data": "d/*", "cycle": 1, "block": 1, "shuffle_files": False},
        ),
        (
            "TFRecordDataset(filenames='d/*', num_parallel_reads=5)",
            {"data": "d/*", "cycle": 5, "block": 1, "shuffle_files": False},
        ),
    ],
)
def test_files_that_are_listed_are_a_reader(text: str, expected: dict[str, object]) -> None:
    assert settings_of(text) == {**expected, "deterministic": True}


def test_an_interleave_may_hand_out_what_is_ready() -> None:
    ready = "list_files('d', seed=1) | interleave(cycle_length=2, {}deterministic=False)"
    assert settings_of(ready.format(""))["deterministic"] is True  # it has no threads
    assert settings_of(ready.format("num_parallel_calls=2, "))["deterministic"] is False


@pytest.mark.parametrize(
    "text",
    [
        "list_files('it\\'s/*', seed=7) | interleave(cycle_length=4, block_length=2) | batch(2)",
        "list_files('d', seed=1) | interleave(cycle_length=2, num_parallel_calls=1, "
        "deterministic=False)",
        "TFRecordDataset('d') | shuffle(4, seed=1)",
        "zip(list_files('d', seed=1) | interleave(cycle_length=2) | batch(2), train)",
        "train | concatenate(TFRecordDataset('d'))",
    ],
)
def test_texts_and_documents_are_read_back(text: str) -> None:
    pipeline = parse_stages(text)
    assert parse_stages(text_of(pipeline)) == pipeline
    assert pipeline_of(document_of(pipeline)) == pipeline
    assert ReadSettings(stages=pipeline).stages == pipeline


@pytest.mark.parametrize(
    "document",
    [
        ["list_files('d', seed=3) | interleave(cycle_length=2)", "batch(3)"],
        ["list_files('d', seed=3)", "interleave(cycle_length=2)", {"batch": 3}],
        [
            {"list_files": {"pattern": "d", "seed": 3}},
            {"interleave": {"cycle_length": 2}},
            {"batch": 3},
        ],
    ],
)
def test_items_of_a_document_are_joined(document: list[object]) -> None:
    text = "list_files('d', seed=3) | interleave(cycle_length=2) | batch(3)"
    assert pipeline_of(document) == parse_stages(text)


@pytest.mark.parametrize(
    "text",
    [
        "list_files",
        "list_files(pattern)",
        "list_files(['a', 'b'], seed=1) | interleave(cycle_length=2)",
        "list_files('d', seed=seed) | interleave(cycle_length=2)",
        "list_files('d', seed=1) | map | interleave(cycle_length=2)",
        "list_files('d', seed=1) | interleave(lambda f: read(f, 1), cycle_length=2)",
        "list_files('d', seed=1) | interleave(cycle_length=len(files))",
        "TFRecordDataset(files)",
        "TFRecordDataset(f'{folder}/*')",
    ],
)
def test_what_code_decides_leaves_the_order_open(text: str) -> None:
    source = parse_stages(text).source
    assert isinstance(source, Opaque)
    assert text_of(parse_stages(text)).startswith(source.call)


def test_an_interleave_of_something_else_is_open_as_ever() -> None:
    (stage,) = parse_stages("train | interleave(f, cycle_length=2)").stages
    assert isinstance(stage, Opaque)
    assert stage.call == "interleave"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("list_files('d') | interleave()", "cycle_length is needed"),
        ("list_files('d') | interleave(cycle_length=AUTOTUNE)", "cycle_length is needed"),
        ("list_files('d') | interleave(cycle_length=0)", "cycle_length=0: a number"),
        (
            "list_files('d') | interleave(cycle_length=1, block_length=0)",
            "block_length=0: a number from 1",
        ),
        ("list_files('d') | interleave(cycle_length=1, num_parallel_calls=2)", "TensorFlow refuse"),
        ("list_files('d') | interleave(cycle_length=1, deterministic=3)", "true or false"),
        ("list_files('d', seed='a')", 'list_files: seed="a": a whole number is needed'),
        ("list_files('d', shuffle=3)", "shuffle=3: true or false"),
        ("list_files(3)", "list_files: pattern=3: a text is needed"),
        ("TFRecordDataset('')", 'TFRecordDataset: filenames="": a name is needed'),
        ("TFRecordDataset('d', num_parallel_reads=-1)", "a number is needed"),
        ("batch(2) | list_files('d')", "is a source, so it comes first"),
    ],
)
def test_what_tensorflow_refuses_or_the_machine_decides(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_stages(text)
