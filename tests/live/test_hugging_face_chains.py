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
from shardctl.loaders.loader import LOADERS, library_of, release_of
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSource
from shardctl.loaders.vocabulary import calls_of
from shardctl.metadata.loader_versions import installed_version
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import parse_stages
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.late_modules import needs
from tests.loaders.agreement import check_agreement

STRATEGIES = ("first_exhausted", "all_exhausted", "all_exhausted_without_replacement")
_NUM_LIVE = FUZZ * 300 // 2000


def of_data(stage: Any) -> Any:
    """Return which examples pass, where a file would say it."""
    return lambda indices: np.asarray(indices) % 3 != 1


def question(text: str, lengths: list[list[int]], version: str, **more: Any) -> LoaderConfig:
    pipeline = parse_stages(text, calls_of("hf"))
    sources, first = {}, 0
    for read in readers_of(pipeline):
        own = np.array(lengths["abc".index(read.spec or "")])
        sources[read] = LoaderSource(first=first, lengths=own)
        first += int(own.sum())
    whole = np.array([size for sizes in lengths for size in sizes])
    given: dict[str, Any] = {"stages": pipeline, "sources": sources, "kept": of_data}
    return LoaderConfig(lengths=whole, version=version, **given, **more)


def stage(random: Random, *, streams: bool, is_new: bool) -> str:
    """Return a random call."""
    n, seed = random.randrange(9), random.randrange(50)
    parts = random.choice((1, 2, 3))
    part, how = random.randrange(parts), random.choice(("", ", contiguous=False"))
    both = [
        f"skip({n})",
        f"take({3 * n})",
        f"map(batched={n % 2 > 0})",
        f"shard({parts}, {part}{how})",
        f"repeat({n % 3 + 1})",
        "filter(kept='seen')",
        f"batch({n + 1}, drop_last_batch={n % 2 > 0})",
        "remove_columns('text') | cast_column('a', 'b')",
        f"split_dataset_by_node({part}, {parts})",
    ]
    turns = f", max_buffer_input_shards={n % 4 + 1}" if is_new and n % 2 else ""
    shuffle = [f"shuffle({seed}, buffer_size={random.choice((1, 2, 5, 13, 40))}{turns})"] * 4
    size = random.choice(("0.3", "2", "0.2, 0.5"))
    mixes, which = f"seed={seed}, shuffle={n % 3 > 0}", random.choice(("train", "test"))
    by_index = [
        *[f"shuffle({seed})"] * 3,
        f"select([{n}, 0, 1, 1])",
        f"select('{n}:{n + 5}:2')",
        f"select('{n // 2}:')",
        f"train_test_split({size}, {mixes}, split={which})",
    ]
    return random.choice([*both, *(shuffle if streams else by_index)])


def chain(random: Random, num_inputs: int, **more: bool) -> str:
    def stages(text: str, most: int) -> str:
        return " | ".join([text, *(stage(random, **more) for _ in range(random.randrange(most)))])

    if num_inputs == 1:
        return stages("a", 5)
    inputs = ", ".join(stages("abc"[number], 3) for number in range(num_inputs))
    if random.random() < 0.4:
        return stages(f"concatenate_datasets([{inputs}])", 4)
    weights = [random.randrange(1, 9) for _ in range(num_inputs)]
    drawn = [weight / sum(weights) for weight in weights]
    said = f", probabilities={drawn}, seed={num_inputs}" if random.random() < 0.6 else ""
    strategy = random.choice(STRATEGIES)
    return stages(f"interleave_datasets([{inputs}]{said}, stopping_strategy={strategy})", 4)


def drawn(random: Random, version: str, share_of_workers: float = 0.05) -> tuple[str, LoaderConfig]:
    """Return a random chain, and the question of a process that reads it."""
    is_new = (release_of(version) or (5,)) >= (5,)
    sizes = (1, 2, 3, 7, 15)
    inputs = range(random.choice((1, 1, 2, 3)))
    lengths = [random.choices(sizes, k=random.randrange(1, 7)) for _ in inputs]
    streams = random.random() < 0.7
    text = chain(random, len(inputs), streams=streams, is_new=is_new)
    if not streams and random.random() < 0.2:
        text = f"{text} | to_iterable_dataset(2) | {stage(random, streams=True, is_new=is_new)}"
    given = {"streaming": streams, "arrow": random.random() < 0.5}
    given |= {"first_epoch": random.choice((0, 0, 1, 2)), "epochs": random.choice((1, 1, 2))}
    given |= {"batch": random.choice((None, 2, 5)), "drop_remainder": random.random() < 0.3}
    workers = random.choice((1, 2, 3)) if random.random() < share_of_workers else 0
    return text, question(text, lengths, version, workers=workers, **given)


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
    own = {"stages": found.stages, "sources": {read: source}, "streaming": streams}
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
        text, config = drawn(random, installed_version("datasets") or "")
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
        text, config = drawn(random, installed_version("datasets") or "", 0)
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
