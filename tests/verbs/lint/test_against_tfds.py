"""What the rules say of TFDS is what its reader, its builders and its splits do."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import shardctl.tfds
from shardctl.dataset.dataset import Dataset, Split
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.resolved_spec import num_rows_written
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.lint.answer import lint
from shardctl.verbs.lint.context import Usage
from tests.cases import FUZZ, check_cases
from tests.spec.tfds_splits import Layout, tfds_reads, tfds_splits
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset, read_ids

LENGTHS = [3, 5, 17, 16, 1, 33]
TOTAL = sum(LENGTHS)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("toys")
    splits = {"train": LENGTHS, "one": [9]}
    folders = {
        form: build_dataset(root / form, splits=splits, file_format=form)
        for form in WRITABLE_FORMATS
    }
    folders["ordered"] = build_dataset(root / "ordered", splits=splits, disable_shuffling=True)
    return folders


def builder(folder: Path) -> Any:
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder)


def found(
    folder: Path, code: str, spec: str = "train", usage: Usage | None = None, **settings: Any
) -> list[str]:
    """Return why a rule finds something in a dataset on disk."""
    report = lint(read_tfds_folder(folder), [spec], ReadSettings(**settings), usage=usage)
    return [finding.why for finding in report.findings if finding.rule.code == code]


def read_config(**options: Any) -> Any:
    import tensorflow_datasets as tfds

    return tfds.ReadConfig(**options)


def repeated(folder: Path, **options: Any) -> Any:
    config = read_config(repeat_filenames=True, try_autocache=False, **options)
    return builder(folder).as_dataset(split="train", read_config=config)


def test_files_that_repeat_break_the_assertion_after_an_epoch(folders: dict[str, Path]) -> None:
    import tensorflow as tf

    folder = folders["tfrecord"]
    endless: dict[str, Any] = {"repeat_files": True, "shuffle_seed": 1}
    assert found(folder, "SC022", **endless) == [
        "train: reading fails after the first epoch, since TFDS asserts that there are no more "
        f"than {TOTAL} examples"
    ]
    reader = iter(repeated(folder))
    assert len([next(reader) for _ in range(TOTAL)]) == TOTAL
    with pytest.raises(tf.errors.OpError, match=f"expected to contain {TOTAL} elements"):
        next(reader)

    assert not found(folder, "SC022", usage=Usage(assert_cardinality=False), **endless)
    inspect_pipeline = shardctl.tfds.inspect
    for asserts in (True, False):  # as inspect finds it
        inspected = inspect_pipeline(repeated(folder, assert_cardinality=asserts)).settings
        assert bool(lint(folder, "train", inspected, select=["SC022"]).findings) is asserts
    files = tf.data.Dataset.list_files(f"{folder}/*train*", shuffle=False).repeat()
    plain = inspect_pipeline(files.interleave(tf.data.TFRecordDataset, cycle_length=2)).settings
    assert plain.repeat_files
    assert not lint(folder, "train", plain, select=["SC022"]).findings
    without = repeated(folder, assert_cardinality=False)
    assert len(read_ids(without.take(2 * TOTAL + 1))) == 2 * TOTAL + 1

    assert not found(folder, "SC022", usage=Usage(take=TOTAL), **endless)
    assert len(read_ids(repeated(folder).take(TOTAL))) == TOTAL

    assert not found(folder, "SC022", usage=Usage(hosts=2), host_by="files", **endless)
    of_host = repeated(folder, input_context=tf.distribute.InputContext(2, 0))
    assert len(read_ids(of_host.take(2 * TOTAL))) == 2 * TOTAL


PIPELINES: dict[str, tuple[bool, Callable[[Any], Any]]] = {
    # whether reading fails, and the pipeline over a reader
    "all": (True, lambda read: read()),
    "batches": (True, lambda read: read().map(lambda e: e["id"] + 1).batch(4).prefetch(2)),
    "an epoch": (False, lambda read: read().take(TOTAL)),
    "part again": (False, lambda read: read().take(TOTAL).repeat(2)),
    "mixture": (True, lambda read: mixed(read(), read(assert_cardinality=False))),
    "mixture without": (False, lambda read: mixed(*[read(assert_cardinality=False)] * 2)),
    "part of a mixture": (False, lambda read: mixed(read(), read()).take(TOTAL)),
}


def mixed(*readers: Any) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.sample_from_datasets(list(readers), seed=1)


@pytest.mark.parametrize("name", PIPELINES)
def test_an_assertion_is_found_where_reading_fails(folders: dict[str, Path], name: str) -> None:
    import tensorflow as tf

    fails, make = PIPELINES[name]
    dataset = make(functools.partial(repeated, folders["tfrecord"]))
    codes = [finding.rule.code for finding in shardctl.tfds.inspect(dataset).findings()]
    assert codes.count("SC022") == fails
    with pytest.raises(tf.errors.OpError, match="expected to contain") if fails else nullcontext():
        for _ in itertools.islice(dataset, 4 * TOTAL):
            pass


@pytest.mark.parametrize("caches", [True, False])
def test_a_cache_of_what_repeats_is_found_where_it_is(
    folders: dict[str, Path], caches: bool
) -> None:
    config = read_config(
        repeat_filenames=True, assert_cardinality=False, try_autocache=caches, shuffle_seed=1
    )
    dataset = builder(folders["tfrecord"]).as_dataset(split="one", read_config=config)
    codes = [finding.rule.code for finding in shardctl.tfds.inspect(dataset).findings()]
    assert ("SC074" in codes) is caches  # the cache is a stage, which no second rule speaks of
    assert "SC023" not in codes


flags: st.SearchStrategy[bool | None] = st.sampled_from([None, True, False])


def test_the_cache_is_where_tfds_puts_it(folders: dict[str, Path]) -> None:
    folder = folders["tfrecord"]
    toy = builder(folder)

    def check(case: tuple[str, bool, bool | None, bool]) -> None:
        spec, shuffle_files, reshuffle, try_autocache = case
        config = read_config(
            try_autocache=try_autocache, shuffle_reshuffle_each_iteration=reshuffle
        )
        caches = toy._should_cache_ds(spec, shuffle_files, config)
        usage = Usage(try_autocache=try_autocache)
        settings: dict[str, Any] = {
            "shuffle_files": shuffle_files,
            "reshuffle": reshuffle,
            "repeat_files": True,
        }
        assert bool(found(folder, "SC023", spec, usage, **settings)) == caches, case

    specs = st.sampled_from(["train", "one", "train[:1shard]", "train[:2]", "train[2:5]"])
    cases = st.tuples(specs, st.booleans(), flags, st.booleans())
    check_cases(cases, check, 60)


def test_an_interleave_races_just_where_the_rule_says_so(folders: dict[str, Path]) -> None:
    toy = builder(folders["tfrecord"])

    def check(case: tuple[bool, int | None, bool | None]) -> None:
        shuffle_files, seed, deterministic = case
        shuffle_files = shuffle_files or seed is not None
        config = read_config(shuffle_seed=seed)
        if deterministic is not None:
            config.options.deterministic = deterministic
        dataset = toy.as_dataset(split="train", read_config=config, shuffle_files=shuffle_files)
        settings: dict[str, Any] = {
            "shuffle_files": shuffle_files,
            "shuffle_seed": seed,
            "deterministic": deterministic,
            "global_seed": 1,
        }
        races = bool(found(folders["tfrecord"], "SC008", **settings))
        assert interleave_is_deterministic(dataset) == (not races), case

    cases = st.tuples(st.booleans(), st.sampled_from([None, 1]), flags)
    check_cases(cases, check, 12)


def interleave_is_deterministic(dataset: Any) -> bool:
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef.FromString(dataset._as_serialized_graph().numpy())
    (interleave,) = (node for node in graph.node if node.op == "ParallelInterleaveDatasetV4")
    return bool(interleave.attr["deterministic"].s == b"true")


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        ({"cycle": 1}, {"interleave_cycle_length": 1}),
        ({"cycle": 2}, {"interleave_cycle_length": 2}),
        ({"cycle": "auto", "cpus": 1}, {"interleave_cycle_length": None}),
        ({"shuffle_files": True}, {}),
        ({"shuffle_seed": 4}, {"shuffle_seed": 4}),
    ],
)
def test_an_ordered_dataset_is_refused_just_where_the_rule_says_so(
    folders: dict[str, Path], settings: dict[str, Any], options: dict[str, Any]
) -> None:
    folder = folders["ordered"]
    shuffles = ReadSettings(**settings).shuffles_files
    refused = False
    try:
        builder(folder).as_dataset(
            split="train", read_config=read_config(**options), shuffle_files=shuffles
        )
    except ValueError:
        refused = True
    assert bool(found(folder, "SC026", **settings)) == refused
    assert not found(folders["tfrecord"], "SC026", **settings)


@pytest.mark.parametrize("file_format", WRITABLE_FORMATS)
@pytest.mark.parametrize("as_data_source", [False, True])
def test_a_format_is_refused_just_where_the_rule_says_so(
    folders: dict[str, Path], file_format: str, as_data_source: bool
) -> None:
    toy = builder(folders[file_format])
    read = toy.as_data_source if as_data_source else toy.as_dataset
    refused = False
    try:
        read(split="train")
    except NotImplementedError:
        refused = True
    usage = Usage(as_data_source=as_data_source)
    assert bool(found(folders[file_format], "SC027", usage=usage)) == refused


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 199, 214, 300, 301, 450, 700, 1201])
def test_parquet_files_hold_the_rows_that_tfds_writes(tmp_path: Path, length: int) -> None:
    from pyarrow import parquet
    from tensorflow_datasets.core import file_adapters

    adapter = file_adapters.ADAPTER_FOR_FORMAT[file_adapters.FileFormat.PARQUET]
    path = tmp_path / "toy-train.parquet-00000-of-00001"
    adapter.write_examples(path, ((index, b"x") for index in range(length)))
    assert num_rows_written(length) == parquet.ParquetFile(path).metadata.num_rows


bounds = st.integers(0, TOTAL)
slices = st.tuples(bounds, bounds).filter(lambda pair: pair[0] < pair[1])
slice_specs = slices.map(lambda pair: f"train[{pair[0]}:{pair[1]}]")
shard_specs = st.integers(1, 6).map(lambda stop: f"train[:{stop}shard]")
percent_specs = st.integers(1, 99).map(lambda stop: f"train[{stop}%:]")


def test_parts_of_parquet_shards_are_read_whole(folders: dict[str, Path]) -> None:
    toys = {form: builder(folders[form]) for form in ("parquet", "array_record")}

    def check(spec: str) -> None:
        usage = Usage(as_data_source=True)
        whys = found(folders["parquet"], "SC028", spec, usage)
        sizes = {form: len(toy.as_data_source(split=spec)) for form, toy in toys.items()}
        num_asked = toys["parquet"].info.splits[spec].num_examples
        assert sizes["array_record"] == num_asked
        assert bool(whys) == (sizes["parquet"] != num_asked), spec
        told = f"yields {sizes['parquet']} examples in place of {num_asked},"
        assert all(told in why for why in whys)
        assert not found(folders["array_record"], "SC028", spec, usage)

    specs = slice_specs | shard_specs | percent_specs
    sums = st.lists(specs, min_size=1, max_size=2).map("+".join)
    check_cases(sums, check, 40)


def test_a_data_source_has_no_read_config(folders: dict[str, Path]) -> None:
    toy = builder(folders["parquet"])
    parameters = set(inspect.signature(toy.as_data_source).parameters)
    assert parameters == {"split", "decoders", "deserialize_method", "file_format"}
    usage = Usage(as_data_source=True)
    assert found(folders["parquet"], "SC029", usage=usage, shuffle_seed=1, cycle=3)


@pytest.mark.parametrize("num_hosts", [2, 6, 7, 8])
def test_tfds_refuses_to_deal_files_just_where_the_rule_says_so(
    folders: dict[str, Path], num_hosts: int
) -> None:
    import tensorflow as tf

    folder = folders["tfrecord"]
    context = tf.distribute.InputContext(num_hosts, 0)
    refused = False
    try:
        builder(folder).as_dataset(split="train", read_config=read_config(input_context=context))
    except ValueError:
        refused = True
    usage = Usage(hosts=num_hosts)
    assert bool(found(folder, "SC031", usage=usage, host_by="files")) == refused


@pytest.mark.parametrize("num_hosts", [1, 8, 9, 10, 20])
def test_tfds_refuses_a_host_without_examples_just_where_the_rule_says_so(
    folders: dict[str, Path], num_hosts: int
) -> None:
    import tensorflow_datasets as tfds

    toy = builder(folders["tfrecord"])
    idle = 0
    for part in tfds.even_splits("one", num_hosts):
        try:
            toy.as_dataset(split=part)
        except ValueError:
            idle += 1
    whys = found(folders["tfrecord"], "SC037", "one", Usage(hosts=num_hosts))
    assert whys == (
        []
        if not idle
        else [f"one: {idle} host{'s get' if idle > 1 else ' gets'} none of its 9 examples"]
    )


# The subsplits rules against sets of examples, as TFDS's own instructions read them.

TOY: Layout = {"train": (3, 0, 5, 17, 16, 1, 58), "test": (9, 4)}


@st.composite
def parts(draw: st.DrawFn) -> str:
    split = draw(st.sampled_from(["train", "train", "train", "test"]))
    unit = draw(st.sampled_from(["", "%", "shard"]))
    most = {"": sum(TOY[split]), "%": 100, "shard": len(TOY[split])}[unit]
    start, stop = sorted((draw(st.integers(0, most)), draw(st.integers(0, most))))
    if start == stop:
        return split
    texts = [f"[{start}{unit}:{stop}{unit}]", f"[{start}{unit}:]", f"[:{stop}{unit}]"]
    return split + draw(st.sampled_from(texts))


specs = st.lists(parts(), min_size=1, max_size=2).map("+".join)
spec_lists = st.lists(specs, max_size=3).map(lambda some: list(dict.fromkeys(some)))


def read_by_tfds(splits: Any, spec: str) -> list[tuple[str, int]]:
    """Return the (split, id) that TFDS's instructions for a spec read, by counting."""
    first_ids = {
        f"toy-{split}.tfrecord-{shard:05}-of-{len(lengths):05}": (split, sum(lengths[:shard]))
        for split, lengths in TOY.items()
        for shard in range(len(lengths))
    }
    examples = []
    for name, skip, take, _ in tfds_reads(splits, spec) or []:
        split, first = first_ids[name]
        examples += [(split, first + skip + index) for index in range(take)]
    return examples


def in_neither(
    reads: Sequence[list[tuple[str, int]]], split: str, size: int
) -> list[tuple[int, int]]:
    """Return the gaps [start, stop) between examples that are read, by looking at each id."""
    seen = sorted({i for examples in reads for name, i in examples if name == split})
    gaps = [(a + 1, b) for a, b in itertools.pairwise(seen) if b > a + 1]
    return [(a, b) for a, b in gaps if b - a <= max(1, size // 100)]


def agrees_about_specs(splits: Any, trained: list[str], evaluated: list[str]) -> None:
    dataset = Dataset(
        name="toy",
        splits=tuple(Split(name=name, shard_lengths=lengths) for name, lengths in TOY.items()),
    )
    report = lint(
        dataset, trained, evaluated=evaluated, select=["SC041", "SC042", "SC043", "SC045"]
    )
    uses = {(read.spec, read.evaluates) for read in report.context.reads}
    examples = {spec: read_by_tfds(splits, spec) for spec, _ in uses}
    shared = {"SC041": set(), "SC042": set()}  # type: ignore[var-annotated]
    ordered = [(read.spec, read.evaluates) for read in report.context.reads]
    for place, (one, one_use) in enumerate(ordered):
        for other, other_use in ordered[place + 1 :]:
            both = set(examples[one]) & set(examples[other])
            if both:
                code = "SC042" if one_use == other_use else "SC041"
                shared[code].add((frozenset({one, other}), len(both)))
    told: dict[str, set[Any]] = {"SC041": set(), "SC042": set(), "SC043": set(), "SC045": set()}
    gaps = 0
    for finding in report.findings:
        code = finding.rule.code
        if code in shared:
            words = finding.why.replace(",", "").split()
            count = next(int(w) for w, n in itertools.pairwise(words) if n[:7] == "example")
            told[code].add((frozenset(finding.specs), count))
        told["SC043"] |= {finding.specs[0]} if code == "SC043" else set()
        gaps += code == "SC045"
    assert told["SC041"] == shared["SC041"]
    assert told["SC042"] == shared["SC042"]
    assert told["SC043"] == {
        spec for spec, found in examples.items() if len(set(found)) < len(found)
    }
    read = [examples[spec] for spec, _ in ordered]
    expected = sum(len(in_neither(read, name, sum(lengths))) for name, lengths in TOY.items())
    assert gaps == (expected if len(ordered) > 1 else 0)


def test_specs_share_and_leave_what_tfds_reads() -> None:
    splits = tfds_splits(TOY)

    def check(case: tuple[list[str], list[str]]) -> None:
        agrees_about_specs(splits, *case)

    check_cases(st.tuples(spec_lists, spec_lists), check, 60)


@pytest.mark.fuzz
def test_specs_share_and_leave_what_tfds_reads_fuzzed() -> None:
    splits = tfds_splits(TOY)

    def check(case: tuple[list[str], list[str]]) -> None:
        agrees_about_specs(splits, *case)

    cases = st.tuples(spec_lists, spec_lists)
    check_cases(cases, check, FUZZ)
