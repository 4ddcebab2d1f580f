"""Real libraries, run beside the rules of their orders; `test_random_settings.py` has many more."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.cli.main import main
from shardctl.code.reader import BRIDGE, TFDS
from shardctl.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.errors import MissingDependencyError, UsageError
from shardctl.loaders.hugging_face import hugging_face_sequence
from shardctl.loaders.loader import LOADERS, library, library_of
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.order.loader_order import LoaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.subsplit import resolve_subsplit
from tests.cases import counted
from tests.late_modules import needs
from tests.loaders.agreement import check_agreement
from tests.loaders.recorded import cases_of, config_of, handed_out

of_torch = needs("torch", reason="needs PyTorch: pip install 'shardctl[torch]'")
of_hf = needs("datasets", reason="needs Hugging Face Datasets: pip install datasets")


def test_a_missing_library_is_named_with_what_installs_it() -> None:
    with pytest.raises(MissingDependencyError, match=r"pip install 'torch>=2.13'"):
        library("no_such_library", LOADERS["torch"])
    for loader in LOADERS.values():
        assert callable(library_of(loader).batches)


def test_each_source_of_a_chain_has_a_name_in_code() -> None:
    found = library_of(LOADERS["torch"])
    names = [found.source, f"{found.source}_2", f"{found.source}_3"]
    assert found.names_of_sources(3) == names


def test_code_of_counted_files_imports_what_finds_them() -> None:
    split = Split(name="train", shard_lengths=(2,))
    found: Any = {"origin": COUNTED_FILES, "reference": "/data/t-*", "file_format": "array_record"}
    files = Dataset(name="d", splits=(split,), **found)
    ranges = resolve_subsplit("train", files).ranges
    order = LoaderOrder(files, ranges, ReadSettings(loader="grain"))
    imports, *_ = library_of(LOADERS["grain"]).code("train", order)
    assert imports == ["import grain", BRIDGE, TFDS]


@needs("grain", reason="Grain is missing: pip install 'shardctl[grain]'")
@pytest.mark.fuzz
def test_a_reader_that_stops_early_leaves_no_worker_processes() -> None:
    import multiprocessing

    given = {"num_examples": 500, "seed": 1, "workers": 2, "batch": 4}
    config = config_of("grain", given, metadata.version("grain"))
    batches = library_of(LOADERS["grain"]).batches(config)
    first = LOADERS["grain"].sequence(config).indices_at(np.arange(4))
    assert next(batches).tolist() == first.tolist()
    batches.close()
    assert not multiprocessing.active_children()


@of_torch
def test_what_was_recorded_is_what_torch_hands_out() -> None:
    for config, batches in counted(list(cases_of("torch_torch"))[:12]):
        if not config.workers:
            assert handed_out("torch", config) == batches


@of_torch
def test_a_seed_that_torch_refuses_is_refused_in_its_words() -> None:
    config = config_of("torch", {"n": 3, "seed": 1 << 64, "shares": True})
    with pytest.raises(UsageError, match=r"^PyTorch refuses these settings: "):
        next(library_of(LOADERS["torch"]).batches(config))


@of_torch
def test_the_generator_of_the_caller_is_left_as_it_was() -> None:
    import torch

    torch.manual_seed(4)
    before = torch.random.get_rng_state()
    config = config_of("torch", {"n": 9, "global_seed": 5, "shuffle": True, "first_epoch": 2})
    assert sum(map(len, library_of(LOADERS["torch"]).batches(config))) == 9
    assert torch.equal(torch.random.get_rng_state(), before)


@of_hf
@pytest.mark.parametrize(
    "settings",
    [{}, {"seed": 2}, {"seed": 2, "buffer": 30}, {"seed": 2, "buffer": 30, "arrow": True}],
    ids=str,
)
@pytest.mark.parametrize("shards", [[5, 9, 2], [5, 0, 9, 2]])
def test_hugging_face_over_indices(settings: dict[str, Any], shards: list[int]) -> None:
    lengths, version = np.array([5, 9, 2]), metadata.version("datasets")
    config = LoaderConfig(
        lengths=lengths, shard_lengths=np.array(shards), version=version, **settings
    )
    batches = handed_out("hf", config)
    assert batches is not None
    check_agreement(hugging_face_sequence(config), batches, 16, batched=False)


@of_hf
@pytest.mark.parametrize("kind", ["parquet", "saved", "generated"])
def test_a_layout_of_real_files_is_read_as_the_library_reads_them(
    kind: str, tmp_path: Path
) -> None:
    """Files as `to_parquet` shards, `save_to_disk` and `load_dataset` leave them."""
    import datasets

    datasets.disable_progress_bars()
    whole = datasets.Dataset.from_dict({"index": list(range(100)), "text": ["a", "b"] * 50})
    folder = tmp_path / "made"
    if kind == "parquet":
        (folder / "data").mkdir(parents=True)
        for shard in range(3):
            path = folder / "data" / f"train-{shard:05d}-of-00003.parquet"
            whole.shard(3, shard, contiguous=True).to_parquet(path, batch_size=7)
        files, builder = sorted(folder.rglob("*.parquet")), "parquet"
    elif kind == "saved":
        whole.save_to_disk(folder, num_shards=3)
        files, builder = sorted(folder.rglob("*.arrow")), "arrow"
    else:
        whole.save_to_disk(tmp_path / "first", num_shards=3)
        given = sorted(map(str, (tmp_path / "first").glob("*.arrow")))
        cached = datasets.load_dataset("arrow", data_files=given, split="train", cache_dir=folder)
        cached.map(lambda row: {"other": row["index"]})  # leaves a file of its own there
        files, builder = sorted(folder.rglob("arrow-train*.arrow")), "arrow"
    layout = tmp_path / "layout.yaml"
    with pytest.raises(SystemExit) as ended:
        main(["index", str(folder), "-o", str(layout)])
    assert ended.value.code == 0
    for settings in ({"shuffle_seed": 4}, {"shuffle_seed": 4, "buffer": 30}, {"streaming": True}):
        given = [str(file) for file in files]
        streams = settings != {"shuffle_seed": 4}
        real = datasets.load_dataset(
            builder, data_files=given, split="train", streaming=streams, cache_dir=tmp_path / "c"
        )
        if "buffer" in settings:
            real = real.shuffle(seed=4, buffer_size=30)
        elif "shuffle_seed" in settings:
            real = real.shuffle(seed=4)
        order = shardctl.plan_order(str(layout), "train", {"loader": "hf", **settings}).order
        codes = order.codes_at(np.arange(order.num_examples)).tolist()
        assert codes == [row["index"] for row in real]
