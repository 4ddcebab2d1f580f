"""The calls of the host modes: each does what the core says of its mode."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import HOST_MODES, Host, HostBy
from shardctl.tfds.training.pipeline import (
    input_context_of_host,
    split_of_host,
)

WORDS: tuple[HostBy, ...] = get_args(HostBy)


def _listed(dataset: Any) -> list[int]:
    return [int(number) for number in dataset.as_numpy_iterator()]


@pytest.mark.parametrize("word", WORDS)
def test_a_reader_alone_makes_none_of_them(tf: Any, word: HostBy) -> None:
    alone, numbers = ReadSettings(host_by=word), tf.data.Dataset.range(3)
    assert split_of_host("train", alone) == "train"
    assert input_context_of_host(alone) is None
    assert instructions_of_host(numbers, alone) is numbers
    assert examples_of_host(numbers, alone) is numbers


@pytest.mark.parametrize("word", WORDS)
def test_each_does_what_its_mode_says(tf: Any, word: HostBy) -> None:
    import tensorflow_datasets as tfds

    host, mode = Host(index=1, count=3), HOST_MODES[word]
    settings = ReadSettings(host=host, host_by=word)
    split = split_of_host("train", settings)
    assert split == (tfds.even_splits("train", 3)[1] if word == "even" else "train")
    context = input_context_of_host(settings)
    given = None if context is None else (context.num_input_pipelines, context.input_pipeline_id)
    assert given == ((3, 1) if word == "files" else None)
    files = _listed(instructions_of_host(tf.data.Dataset.range(8), settings))
    assert files == list(range(8))[mode.own_instructions(8, host)]
    stride, phase = mode.stride_and_phase(host)
    assert (
        _listed(examples_of_host(tf.data.Dataset.range(8), settings))
        == list(range(8))[phase::stride]
    )
