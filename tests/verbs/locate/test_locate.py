"""Where examples are, in the order and on disk, both ways."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.locate import view
from shardctl.verbs.locate.answer import Located, Query, QueryKind, locate_in, matches_at
from shardctl.verbs.locate.view import locate_python
from shardctl.verbs.simulate.answer import simulate_order
from shardctl.verbs.simulate.view import simulate_python
from tests.cases import check_cases
from tests.cli.conftest import Shardctl
from tests.code.pasted import read, run
from tests.golden import assert_answers
from tests.order.order_cases import changed, read_settings
from tests.tfds_datasets import build_dataset

LENGTHS = {"train": (3, 0, 4, 2), "test": (2, 1)}
TOY = Dataset(
    name="d",
    splits=tuple(
        Split(
            name=name,
            shard_lengths=lengths,
            files=(ShardFiles(pattern=f"d-{name}-\0", num_shards=len(lengths)),),
        )
        for name, lengths in LENGTHS.items()
    ),
)


def order_of(spec: str = "train", **settings: object) -> Order:
    return plan_order(TOY, spec, ReadSettings(**settings)).order  # type: ignore[arg-type]


def asked(order: Order, *queries: tuple[QueryKind, object]) -> Located:
    return locate_in(order, [Query(kind=kind, value=str(value)) for kind, value in queries])


def test_a_position_is_an_example_in_a_file_in_an_epoch() -> None:
    # Shards 0 and 2 first, in blocks of 2: 0 1 3 4 2 | 5 6 | 7 8
    order = order_of(cycle=2, block=2, epochs=2, batch=4)
    [match] = asked(order, ("position", 13)).matches
    assert (match.position, match.epoch, match.step, match.index_in_batch) == (13, 1, 3, 1)
    assert (match.id, match.filename, match.index_in_shard) == (2, "d-train-00000", 2)
    assert match.tfds_id == "d-train-00000__2"


@pytest.mark.long
def test_every_position_of_an_order_is_found_by_id_tfds_id_and_step() -> None:
    def law(settings: ReadSettings) -> None:
        for spec in ("train", "test+train[2:]", "train+train[1:3]"):
            order = plan_order(TOY, spec, changed(settings, batch=3)).order
            every = np.arange(order.num_examples)
            whole = matches_at(order, every, order.read(0, order.num_examples))
            assert asked(order, *(("position", p) for p in every)).matches == tuple(whole)
            num_steps = -(-order.num_examples // 3)
            assert asked(order, *(("step", s) for s in range(num_steps))).matches == tuple(whole)
            for match in whole[:6]:
                same = tuple(other for other in whole if other.tfds_id == match.tfds_id)
                assert asked(order, ("id", match.id)).matches == same
                assert asked(order, ("tfds-id", match.tfds_id)).matches == same

    settings = read_settings(num_examples=9, hosts=("even", "examples"))
    check_cases(settings, law, 25)


def test_an_example_that_is_not_in_the_order_is_said() -> None:
    order = order_of("train[:5]")
    located = asked(order, ("id", 7), ("id", 2), ("tfds-id", "d-train-00003__1"))
    assert [match.id for match in located.matches] == [2]
    assert located.warnings == (
        "id 7: not in this order",
        "tfds-id d-train-00003__1: not in this order",
    )


def test_the_last_step_is_as_long_as_what_is_left() -> None:
    assert len(asked(order_of(batch=4), ("step", 2)).matches) == 1
    with pytest.raises(UsageError, match="step 2: the order has 2 batches of 4"):
        asked(order_of(batch=4, drop_remainder=True), ("step", 2))


def test_a_far_position_behind_a_buffer_is_found_both_ways() -> None:
    files = ShardFiles(pattern="d-\0", num_shards=100)
    split = Split(name="train", shard_lengths=(10**7,) * 100, files=(files,))
    # The last buffer has more examples than memory is taken for.
    for buffer in (100, 1_000_000, 1 << 28):
        settings = ReadSettings(buffer=buffer, buffer_seed=1)
        order = plan_order(Dataset(name="d", splits=(split,)), "train", settings).order
        positions = [10**9 - 1, 5 * 10**8] if buffer <= 10**6 else [3]
        ids = [match.id for match in asked(order, *(("position", p) for p in positions)).matches]
        found = asked(order, *(("id", name) for name in ids)).matches
        assert [match.position for match in found] == positions


def test_a_step_of_stages_without_batches_is_refused() -> None:
    order = plan_order(TOY, None, {"stages": "map | repeat(2) | shuffle(2, seed=1)"}).order
    with pytest.raises(UsageError, match=r"--step: the --stages make no batches"):
        asked(order, ("step", 0))


def test_an_id_of_stages_without_end_is_refused_with_a_way_out() -> None:
    order = plan_order(TOY, None, {"stages": "repeat | shuffle(2, seed=1)"}).order
    with pytest.raises(UsageError, match=r"no end, .* 'repeat \| take\(10_000\)'"):
        asked(order, ("id", 3))
    assert asked(order, ("position", 10**6)).matches[0].epoch == 10**6 // 9


@pytest.mark.long
def test_too_many_matches_are_refused_before_the_first_one() -> None:
    order = order_of(shuffle_seed=1, epochs=10**13)
    with pytest.raises(UsageError, match=r"1 examples in .* epochs have more than 8388608"):
        locate_in(order, [Query(kind="id", value=4)])
    for epochs in (10**10, 10**6):
        several = order_of(epochs=epochs)
        with pytest.raises(UsageError, match=r"10 examples in .* epochs have more than 8388608"):
            locate_in(several, [Query(kind="id", value=number % 9) for number in range(10)])


def test_a_search_of_more_than_a_day_is_refused_with_what_it_would_take() -> None:
    data = Dataset(name="d", splits=(Split(name="train", shard_lengths=(2_000_000,)),))
    settings = ReadSettings(buffer=1_000_000, buffer_seed=1, epochs=1_000_000)
    order = plan_order(data, "train", settings).order
    said = "1,000,000 epochs would take about 2 days, and more than a day is refused"
    with pytest.raises(UsageError, match=said):
        locate_in(order, [Query(kind="id", value="3")])


STEPS: list[tuple[str | None, dict[str, Any]]] = [
    ("train+test", {"shuffle_seed": 4, "buffer": 5, "buffer_seed": 1, "batch": 4, "epochs": 3}),
    ("train[2:12]", {"cycle": 2, "block": 3, "host": "1/2", "host_by": "examples", "batch": 4}),
    (None, {"stages": "sample_from_datasets([train | repeat, test | repeat], seed=2) | batch(6)"}),
]


@pytest.mark.parametrize(("spec", "settings"), STEPS)
def test_code_of_a_step_reads_its_examples_alone(
    tmp_path: Path, spec: str | None, settings: dict[str, Any]
) -> None:
    folder = str(build_dataset(tmp_path, splits={"train": [5, 0, 3, 6], "test": [2]}))
    planned = plan_order(folder, spec, ReadSettings(**settings))
    located = asked(planned.order, ("step", 1), ("position", 0))
    made = run(locate_python(located, spec=planned.spec))
    # The oracle is the second batch, and the first example, of the pipeline as TFDS runs it.
    pipeline = run(simulate_python(simulate_order(planned)))["ds"].take(2)
    batches = [batch["tfds_id"].tolist() for batch in pipeline.as_numpy_iterator()]
    assert [name.encode() for name in read(made["ds"])] == [*batches[1], batches[0][0]]


@pytest.mark.parametrize("file_format", ["tfrecord", "array_record"])
def test_code_reads_more_slices_than_tfds_adds(tmp_path: Path, file_format: str) -> None:
    folder = str(build_dataset(tmp_path, splits={"train": [500, 600]}, file_format=file_format))
    order = plan_order(folder, None, ReadSettings(buffer=900, buffer_seed=1, batch=520)).order
    located = asked(order, ("step", 1))
    assert len(list(view._runs(located))) > 510
    found = run(locate_python(located, spec="train"))["ds"]
    elements = found if isinstance(found, list) else found.as_numpy_iterator()
    ids = [element["id"] for element in elements]
    assert ids == [match.id for match in located.matches]


def test_code_of_a_mixture_reads_each_dataset_by_itself(tmp_path: Path) -> None:
    one, two = (str(build_dataset(tmp_path, name, {"train": [3, 4]})) for name in ("one", "two"))
    stages = f"sample_from_datasets([train | repeat, read('train', data='{two}') | repeat], seed=1)"
    located = asked(
        plan_order(one, None, {"stages": stages}).order, *(("position", 9 - i) for i in range(9))
    )
    made = run(locate_python(located, spec="train"))
    for name, found in (("one", made["ds_1"]), ("two", made["ds_2"])):
        names = [match.tfds_id for match in located.matches if str(match.filename).startswith(name)]
        assert read(found) == names != []


LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [5, 0, 3, 6]}, test: {shard_lengths: [2]}}\n"
# With a cycle of 2 and blocks of 2: 0 1 5 6 2 3 7 4 8 9 10 11 12 13
ORDER = ("-d", "toy.yaml", "--cycle", 2, "--block", 2)
FILE = "toy-train.tfrecord-0000{}-of-00004"


@pytest.fixture(autouse=True)
def layout(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT)


def give(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))


def matches(ran: Any) -> list[dict[str, Any]]:
    assert (ran.exit_code, ran.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(ran.stdout)["matches"]
    return found


def test_answers_are_in_the_order_of_the_command_line(shardctl: Shardctl) -> None:
    arguments = ["--id=8", "--position", 0, f"--tfds-id={FILE.format(2)}__2", "--id", 1]
    ran = shardctl("locate", *ORDER, *arguments, "--position", 2, "-f", "json")
    assert [match["position"] for match in matches(ran)] == [8, 0, 6, 1, 2]


def test_lists_come_from_stdin_where_the_options_are(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, b"8\n\n 5 \r\n13\n")
    ran = shardctl("locate", *ORDER, "--position", 1, "--id", "-", "--position", 0, "-f", "json")
    assert [match["id"] for match in matches(ran)] == [1, 8, 5, 13, 0]
    ran = shardctl("locate", *ORDER, "--position", "-", "--id", "-")
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert "can be read only once" in ran.stderr
    give(monkeypatch, b"")
    assert shardctl("locate", *ORDER, "--id", "-").stdout.endswith("\nno matches\n")


def test_what_cannot_be_located_is_one_line(shardctl: Shardctl) -> None:
    def answer(question: str) -> str:
        ran = shardctl("locate", *ORDER, *ast.literal_eval(question))
        assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
        return ran.stderr

    assert_answers(Path(__file__).parent / "golden" / "refused.txt", answer)


def test_a_list_on_a_stdin_that_is_closed_is_one_line(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    ran = shardctl("locate", "--id", "-", "-d", "mnist")
    said = "error: - is a list on stdin, which is closed; give the values themselves\n"
    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", said)
