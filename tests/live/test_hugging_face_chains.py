"""Random chains of Hugging Face Datasets: the rule beside the library, which runs their code."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.live.hugging_face import read_object
from shardctl.loaders.hugging_face import hugging_face_sequence
from shardctl.loaders.loader import LOADERS, library_of
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSource
from shardctl.metadata.loader_versions import installed_version
from shardctl.stages.pipelines import readers_of
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.late_modules import needs
from tests.loaders.agreement import check_agreement
from tests.loaders.hugging_face_chains import drawn, question

_NUM_LIVE = FUZZ * 80 // 2000


def asked(random: Random, share_of_workers: float = 0.05) -> tuple[str, LoaderConfig]:
    version = installed_version("datasets") or ""
    text, lengths, given = drawn(random, version, share_of_workers)
    return text, question(text, lengths, version, **given)


def compare(text: str, config: LoaderConfig) -> None:
    found = hugging_face_sequence(config)
    batches = [each.tolist() for each in library_of(LOADERS["hf"]).batches(config)]
    batched = config.batch is not None or "batch(" in text
    check_agreement(found, batches, config.num_examples, batched=batched)


def read_back(config: LoaderConfig) -> tuple[list[int], list[int]]:
    """Return what an object yields, and what is predicted of what is read back from it."""
    obj = library_of(LOADERS["hf"]).objects(config)["dataset"]
    found = read_object(obj)
    assert found is not None
    real = [example["index"] for example in obj]
    (read,) = set(readers_of(found.stages))
    streams = bool(found.settings.get("streaming"))
    source, rows = next(iter(config.sources.values())), np.arange(config.num_examples)
    if not streams:  # rows of the object's own table
        rows = np.array(obj._data["index"])
        source = LoaderSource(first=0, lengths=np.array([len(rows)]))
    own: dict[str, Any] = {"stages": found.stages, "sources": {read: source}, "streaming": streams}
    own["lengths"] = source.lengths
    sequence = hugging_face_sequence(replace(config, **PLAIN, **own))
    return real, rows[sequence.indices_at(np.arange(sequence.num_examples))].tolist()


PLAIN: dict[str, Any] = {"epochs": 1, "first_epoch": 0, "batch": None, "drop_remainder": False}


@pytest.mark.fuzz
@needs("datasets", reason="needs Hugging Face Datasets: pip install datasets")
def test_random_chains_are_read_as_the_library_reads_them() -> None:
    import datasets

    datasets.disable_progress_bars()
    random, compared = random_of_a_fuzz_run(), 0
    while compared < _NUM_LIVE:
        text, config = asked(random)
        try:
            hugging_face_sequence(config)
        except UsageError:
            continue
        compare(text, config)
        compared += 1
        add_cases()


@pytest.mark.fuzz
@needs("datasets", reason="needs Hugging Face Datasets: pip install datasets")
def test_objects_are_read_back_as_what_made_them() -> None:
    import datasets

    datasets.disable_progress_bars()
    random, compared = random_of_a_fuzz_run(), 0
    while compared < _NUM_LIVE:
        text, config = asked(random, 0)
        # What `shard` leaves out of a stream cannot be seen, nor several sources of rows.
        if re.search(r" shard|batch\(|filter|to_iter|a, b", text) or "b" in text[:30]:
            continue
        try:
            hugging_face_sequence(config)
            real, ours = read_back(config)
        except (UsageError, UnpredictableOrderError):
            continue
        assert real == ours, text
        compared += 1
        add_cases()
