"""Code of other loaders: it is Python anywhere, and run by the real libraries it has the order."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl.dataset.dataset import Dataset, Split
from shardctl.live.hugging_face import loaded
from shardctl.loaders.loader import LOADERS
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.plan_order import plan_order
from shardctl.verbs.resume.answer import resume_loader
from shardctl.verbs.resume.code import resume_python
from shardctl.verbs.simulate.answer import simulate
from shardctl.verbs.simulate.view import simulate_python
from tests.golden import assert_golden
from tests.verbs.lint.lint_cases import dataset

GOLDEN = Path(__file__).parent / "golden"
DATA = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(9, 14)),))
WAYS: list[dict[str, Any]] = [
    *({"loader": name, "batch": 4} for name in LOADERS),
    *({"loader": n, "batch": 4, "host": "1/2", "shuffle_seed": 3, "epochs": 2} for n in LOADERS),
    {"loader": "grain", "batch": 4, "shuffle_seed": 3, "epochs": 2, "drop_remainder": True},
    {"loader": "grain", "batch": 4, "host": "0/2", "host_by": "examples", "shuffle_seed": 1},
    {"loader": "grain", "batch": 4, "buffer": 5, "buffer_seed": 2},
    {"loader": "torch", "batch": 5, "shuffle": True, "global_seed": 7, "pass": 1, "epochs": 2},
    {"loader": "torch", "shuffle_seed": 7, "epochs": 2},
    {"loader": "stateful", "batch": 5, "shuffle": True, "global_seed": 7, "epochs": 2},
    {"loader": "stateful", "batch": 5, "shuffle_seed": 7, "epochs": 2},
    {"loader": "accelerate", "batch": 5, "shuffle": True, "global_seed": 7, "epochs": 2},
    {"loader": "hf", "batch": 4, "shuffle_seed": 3, "epochs": 2},
    {"loader": "hf", "batch": 4, "buffer": 5, "shuffle_seed": 3, "epochs": 2, "arrow": False},
]


def code_of(settings: dict[str, Any], steps: int | None = None) -> str:
    if steps is None:
        return "".join(simulate_python(simulate(DATA, "train", settings)))
    return "".join(resume_python(resume_loader(DATA, "train", settings, steps=steps), None))


@pytest.mark.parametrize("settings", WAYS, ids=str)
def test_it_is_python_in_lines_of_a_bounded_width(settings: dict[str, Any]) -> None:
    version = LOADERS[settings["loader"]].proven[-1]  # whatever is installed here
    codes = [code_of({**settings, "loader_version": version})]
    if "batch" in settings:
        codes.append(code_of({**settings, "loader_version": version}, 2))
    for code in codes:
        ast.parse(code)
        assert max(map(len, code.splitlines())) <= 88
    text = "\n".join(codes).replace(version, "VERSION")
    assert_golden(GOLDEN / f"loader-{WAYS.index(settings)}.txt", text)


GRAIN_WORKERS: list[dict[str, Any]] = [
    {"loader": "grain", "batch": 4, "shuffle_seed": 3, "workers": 2},
    {"loader": "grain", "batch": 4, "host": "0/2", "host_by": "examples", "workers": 1},
]


@pytest.mark.parametrize("settings", GRAIN_WORKERS, ids=str)
def test_the_script_of_a_loader_with_worker_processes_reads_in_them_alone(
    settings: dict[str, Any],
) -> None:
    """Grain starts workers that import the script anew: read there, it fails."""
    *_, last = ast.parse(code_of(settings)).body
    assert isinstance(last, ast.If)
    assert ast.unparse(last.test) == "__name__ == '__main__'"


REAL_FILES: list[tuple[str, dict[str, Any]]] = [
    ("train", {"shuffle_seed": 3}),
    ("train[20:70]+train[:5]", {"shuffle_seed": 3, "host": "1/2"}),
    ("train", {"shuffle_seed": 3, "buffer": 30, "epochs": 2}),
    ("train[67:]+train[:34]", {"streaming": True}),
]


@pytest.mark.parametrize(("spec", "settings"), REAL_FILES, ids=str)
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
