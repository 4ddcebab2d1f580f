"""Records what Hugging Face Datasets hands out, one file a version, for the tests beside it.

Run in an environment with that version of `datasets`, and PyTorch:
`python -m tests.loaders.hugging_face.record`
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
_STRATEGIES = {"files": "shards", "examples": "examples"}


def main() -> None:
    """Write the file of the version that is installed."""
    version = metadata.version("datasets")
    document = {
        "recorded_with": {
            "datasets": version,
            "torch": metadata.version("torch").partition("+")[0],
            "numpy": np.__version__,
            "pyarrow": metadata.version("pyarrow"),
            "python": platform.python_version(),
        },
        "cases": [{**asked, "batches": batches(asked)} for asked in cases(version)],
        "state": state_dict(),
    }
    # A case a line.
    lines = [f"  {json.dumps(case, separators=(',', ':'))}" for case in document.pop("cases")]
    head = json.dumps(document, indent=1)[:-2]
    path = FOLDER / f"recorded_{version.replace('.', '_')}.json"
    joined = ",\n".join(lines)
    path.write_text(f'{head},\n "cases": [\n{joined}\n ]\n}}\n', encoding="utf-8")
    sys.stderr.write(f"{path.name}: {path.stat().st_size:,} bytes\n")


def cases(version: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of the newest file, without those that the version does not take."""
    newest = max(FOLDER.glob("recorded_*.json"))
    for case in json.loads(newest.read_text(encoding="utf-8"))["cases"]:
        del case["batches"]
        if not ("input_shards" in case and version < "5") and not (
            "host_by" in case and version < "5.1"
        ):
            yield case


def batches(asked: dict[str, Any]) -> list[list[int]]:
    """Return what the library hands out, batch by batch; in one piece where there are none."""
    datasets: Any = import_module("datasets")
    ends = np.cumsum(asked["lengths"]).tolist()
    bounds = list(zip([0, *ends], ends, strict=False))
    with tempfile.TemporaryDirectory() as folder:
        made = {
            "generator": lambda: datasets.IterableDataset.from_generator(
                _rows, gen_kwargs={"shards": bounds}
            ),
            "parquet": lambda: datasets.load_dataset(
                "parquet",
                data_files=_parquet_files(bounds, folder),
                split="train",
                streaming=True,
                cache_dir=folder,
            ),
            "to_iterable_dataset": lambda: datasets.Dataset.from_dict(
                {"index": list(range(ends[-1]))}
            ).to_iterable_dataset(num_shards=len(bounds)),
            "map": lambda: datasets.Dataset.from_dict({"index": list(range(ends[-1]))}),
        }
        return list(_read(made[asked["source"]](), asked))


def _read(dataset: Any, asked: dict[str, Any]) -> Iterator[list[int]]:
    if "seed" in asked:
        given = {"buffer_size": "buffer", "max_buffer_input_shards": "input_shards"}
        stated = {name: asked[key] for name, key in given.items() if key in asked}
        dataset = dataset.shuffle(seed=asked["seed"], **stated)
    if "host" in asked:
        strategy = {"strategy": _STRATEGIES[asked["host_by"]]} if "host_by" in asked else {}
        split: Any = import_module("datasets.distributed").split_dataset_by_node
        dataset = split(dataset, *asked["host"], **strategy)
    if "epoch" in asked:
        dataset.set_epoch(asked["epoch"])
    if "batch" not in asked:
        yield [int(example["index"]) for example in dataset]
        return
    data: Any = import_module("torch.utils.data")
    yield from data.DataLoader(
        dataset,
        batch_size=asked["batch"],
        drop_last=asked.get("drop", False),
        num_workers=asked.get("workers", 0),
        collate_fn=_indices,
    )


def state_dict() -> dict[str, Any]:
    """Return what `state_dict` loses of a shuffled stream after 50 examples."""
    datasets: Any = import_module("datasets")
    lengths = [37, 20, 55, 12, 40, 33]
    ends = np.cumsum(lengths).tolist()
    bounds = list(zip([0, *ends], ends, strict=False))
    dataset = datasets.IterableDataset.from_generator(_rows, gen_kwargs={"shards": bounds})
    dataset = dataset.shuffle(seed=3, buffer_size=16)
    examples = iter(dataset)
    head = [next(examples)["index"] for _ in range(50)]
    dataset.load_state_dict(dataset.state_dict())
    rest = [example["index"] for example in dataset]
    return {
        "asked": {"source": "generator", "lengths": lengths, "seed": 3, "buffer": 16},
        "head": head,
        "rest": rest,
    }


def _rows(shards: list[tuple[int, int]]) -> Iterator[dict[str, int]]:
    for start, stop in shards:
        for index in range(start, stop):
            yield {"index": index}


def _indices(examples: list[Any]) -> list[int]:
    return [int(example["index"]) for example in examples]


def _parquet_files(bounds: list[tuple[int, int]], folder: str) -> list[str]:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    files = []
    for shard, (start, stop) in enumerate(bounds):
        path = f"{folder}/train-{shard:05d}-of-{len(bounds):05d}.parquet"
        table = arrow.table({"index": list(range(start, stop))})
        parquet.write_table(table, path, row_group_size=1 + 5 * (shard % 3))
        files.append(path)
    return files


if __name__ == "__main__":
    main()
