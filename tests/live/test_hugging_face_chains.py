"""Random chains of Hugging Face Datasets: the rule beside the library, which runs their code."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UsageError
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


@pytest.mark.fuzz
@needs("datasets", reason="needs Hugging Face Datasets: pip install datasets")
def test_random_chains_are_read_as_the_library_reads_them() -> None:
    import datasets

    datasets.disable_progress_bars()
    version = installed_version("datasets") or ""
    is_new = (release_of(version) or (5,)) >= (5,)
    random, compared = random_of_a_fuzz_run(), 0
    while compared < _NUM_LIVE:
        sizes = (1, 2, 3, 7, 15)
        lengths = [
            random.choices(sizes, k=random.randrange(1, 7))
            for _ in range(random.choice((1, 1, 2, 3)))
        ]
        streams = random.random() < 0.7
        text = chain(random, len(lengths), streams=streams, is_new=is_new)
        if not streams and random.random() < 0.2:
            text = f"{text} | to_iterable_dataset(2) | {stage(random, streams=True, is_new=is_new)}"
        given = {"streaming": streams, "arrow": random.random() < 0.5}
        given |= {"first_epoch": random.choice((0, 0, 1, 2)), "epochs": random.choice((1, 1, 2))}
        given |= {"batch": random.choice((None, 2, 5)), "drop_remainder": random.random() < 0.3}
        workers = random.choice((1, 2, 3)) if random.random() < 0.05 else 0
        config = question(text, lengths, version, workers=workers, **given)
        try:
            found = hugging_face_sequence(config)
        except UsageError:
            continue
        batches = [each.tolist() for each in library_of(LOADERS["hf"]).batches(config)]
        batched = config.batch is not None or "batch(" in text
        check_agreement(found, batches, config.num_examples, batched=batched)
        compared += 1
        add_cases()
