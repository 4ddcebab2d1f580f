"""Random chains of Hugging Face Datasets, and those that real versions were recorded with.

    python -m tests.loaders.hugging_face_chains

adds the installed version to the recorded ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS, calls_of, library_of, release_of
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSource
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import parse_stages

RECORDED = Path(__file__).parent / "hugging_face" / "chains.json"
STRATEGIES = ("first_exhausted", "all_exhausted", "all_exhausted_without_replacement")


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


def drawn(
    random: Random, version: str, share_of_workers: float = 0.05
) -> tuple[str, list[list[int]], dict[str, Any]]:
    """Return a random chain, the shards of its inputs, and the settings of a process."""
    is_new = (release_of(version) or (5,)) >= (5,)
    sizes = (1, 2, 3, 7, 15)
    inputs = range(random.choice((1, 1, 2, 3)))
    lengths = [random.choices(sizes, k=random.randrange(1, 7)) for _ in inputs]
    streams = random.random() < 0.7
    text = chain(random, len(inputs), streams=streams, is_new=is_new)
    if not streams and random.random() < 0.2:
        text = f"{text} | to_iterable_dataset(2) | {stage(random, streams=True, is_new=is_new)}"
    given: dict[str, Any] = {"streaming": streams, "arrow": random.random() < 0.5}
    given |= {"first_epoch": random.choice((0, 0, 1, 2)), "epochs": random.choice((1, 1, 2))}
    given |= {"batch": random.choice((None, 2, 5)), "drop_remainder": random.random() < 0.3}
    workers = random.choice((1, 2, 3)) if random.random() < share_of_workers else 0
    return text, lengths, given | {"workers": workers}


def recorded() -> Iterator[tuple[str, str, LoaderConfig, list[list[int]]]]:
    """Yield each version, a chain, its question, and the batches that the library yielded."""
    for version, cases in json.loads(RECORDED.read_text()).items():
        for text, lengths, given, batches in cases:
            yield version, text, question(text, lengths, version, **given), batches


def record(num_cases: int = 30) -> None:
    """Add the orders of the installed version."""
    version, random = metadata.version("datasets"), Random("recorded")
    known = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    cases: list[Any] = []
    while len(cases) < num_cases:
        text, lengths, given = drawn(random, version, 0)
        try:
            config = question(text, lengths, version, **given)
            LOADERS["hf"].sequence(config)
            batches = [each.tolist() for each in library_of(LOADERS["hf"]).batches(config)]
        except UsageError:
            continue
        if len(text) > 60 and sum(map(len, batches)) in range(8, 60):
            cases.append((text, lengths, given, batches))
    lines = json.dumps({**known, version: cases}, separators=(",", ":")).replace("]]],[", "]]],\n[")
    RECORDED.write_text(f"{lines}\n")


if __name__ == "__main__":
    record()
