"""Code that loads what Hugging Face reads: run, it hands out the order that was predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl.live.hugging_face import loaded
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.plan_order import plan_order
from shardctl.verbs.simulate.answer import simulate
from shardctl.verbs.simulate.code import simulate_python
from tests.verbs.lint.lint_cases import dataset

WAYS: list[tuple[str, dict[str, Any]]] = [
    ("train", {"shuffle_seed": 3}),
    ("train[20:70]+train[:5]", {"shuffle_seed": 3, "host": "1/2"}),
    ("train", {"shuffle_seed": 3, "buffer": 30, "epochs": 2}),
    ("train", {"shuffle_seed": 3, "buffer": 30, "arrow": False}),
    ("train[67:]+train[:34]", {"streaming": True}),
]


@pytest.mark.parametrize(("spec", "settings"), WAYS, ids=str)
def test_code_of_real_files_reads_them_in_the_order(
    spec: str, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets", reason="needs Hugging Face Datasets")
    pytest.importorskip("torch", reason="needs PyTorch")
    datasets.disable_progress_bars()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    whole = datasets.Dataset.from_dict({"index": list(range(100))})
    for shard in range(3):  # 34, 33 and 33 examples
        path = tmp_path / "data" / f"train-{shard:05d}-of-00003.parquet"
        path.parent.mkdir(exist_ok=True)
        whole.shard(3, shard, contiguous=True).to_parquet(path)
    data = shardctl.index(str(tmp_path / "data")).dataset
    code = "".join(simulate_python(simulate(data, spec, {"loader": "hf", **settings})))
    seen: list[int] = []
    code = code.replace("    ...", "    seen.append(example['index'])")
    exec(compile(code, "code", "exec"), {"seen": seen})
    order = plan_order(data, spec, {"loader": "hf", **settings}).order
    assert seen == order.read(0, order.num_examples).tolist()


def test_files_that_it_does_not_read_are_said() -> None:
    order = plan_order(dataset(), "train", {"loader": "hf"}).order
    assert isinstance(order, LoaderOrder)
    code = "\n".join(loaded("train", order))
    assert "datasets reads no tfrecord files" in code
    assert 'dataset = datasets.load_dataset("toy", split="train")' in code
