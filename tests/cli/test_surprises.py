"""What a user would stumble over is said, or refused, in words that name it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.oracles import interleave_by_hand
from tests.tfds_datasets import write_dataset

TRAIN = [13, 0, 9, 22, 5, 17]


def _layout(path: Path, **splits: list[int]) -> str:
    described = {name: {"shard_lengths": lengths} for name, lengths in splits.items()}
    path.write_text(yaml.safe_dump({"name": path.stem, "splits": described}, sort_keys=False))
    return str(path)


@pytest.mark.parametrize("buffer", [3, 5000])
def test_a_buffer_on_hosts_of_examples_resumes_with_what_the_plan_lists(
    shardctl: Any, tmp_path: Path, buffer: int
) -> None:
    """The first instructions are this host's alone; of the others it keeps every third example."""
    ref = _layout(tmp_path / "odd.yaml", train=TRAIN)
    options = ["-d", ref, "--cycle", "2", "--block", "2", "--buffer", str(buffer)]
    options += ["--buffer-seed", "0", "--host", "1/3", "--host-by", "examples"]
    order = yaml.safe_load(shardctl("simulate", *options, "--take", "-1", "-f", "yaml").stdout)
    plan = yaml.safe_load(shardctl("resume", *options, "--consumed", "10", "-f", "yaml").stdout)
    offsets = {f"odd-train.tfrecord-{i:05d}-of-00006": sum(TRAIN[:i]) for i in range(6)}
    reads = [
        [offsets[i["filename"]] + i["skip"] + k for k in range(i["take"])]
        for i in plan["file_instructions"]
    ]
    own, shared = (
        reads[: plan["num_pending_instructions"]],
        reads[plan["num_pending_instructions"] :],
    )
    in_turn = [shared[i][k] for i, k in interleave_by_hand([len(r) for r in shared], 2, 2)]
    found = [example for read in own for example in read] + in_turn[1::3]
    assert sorted(found) == sorted(order["ids"][10:])
    calls = [{**call, "skip_instructions": None} for call in plan["after_read"]]
    call = {"call": "shard", "num_shards": 3, "index": 1, "skip_instructions": None}
    assert (call in calls) == bool(shared)


def test_all_splits_of_several_folders_have_an_order_that_tfds_leaves_open(
    shardctl: Any, tmp_path: Path
) -> None:
    first = write_dataset(tmp_path / "a", splits={"train": [3], "test": [2]})
    second = write_dataset(tmp_path / "b", splits={"train": [4]})
    several = shardctl("plan", "all", "-d", str(first), "-d", str(second))
    assert "orders the splits anew in each run" in several.stderr
    assert "orders the splits" not in shardctl("plan", "all", "-d", str(first)).stderr


@pytest.fixture
def several(tmp_path: Path) -> list[str]:
    """Options that choose a dataset of two folders, whose splits TFDS reads in no fixed order."""
    write_dataset(tmp_path / "a", splits={"train": [3, 2], "test": [2]})
    write_dataset(tmp_path / "b", splits={"train": [4], "extra": [1, 1, 1]})
    folders = [str(tmp_path / part / "toy" / "1.0.0") for part in "ab"]
    return ["-d", folders[0], "-d", folders[1]]


BY_FILES = ("--host-by", "files")


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "all"),
        ("locate", "all", "--position", "3"),
        ("resume", "all", "--consumed", "3"),
        ("resume", "all", "--hosts", "2", "--to-hosts", "3", "--consumed", "1"),
        ("snapshot", "all"),
        ("quality", "all"),
        ("verify", "all"),
        ("hosts", "all", "--hosts", "2"),
        ("eval", "all", "--hosts", "2", "--batch", "2", *BY_FILES),
        ("lint", "all", "--hosts", "2", *BY_FILES),
    ],
    ids=" ".join,
)
def test_whatever_depends_on_an_order_that_tfds_leaves_open_is_refused(
    shardctl: Any, several: list[str], command: tuple[str, ...]
) -> None:
    refused = shardctl(*command, *several)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: 'all' of several folders: ")
    assert refused.stderr.count("\n") == 1
    assert "as in 'train+test+extra'" in refused.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "all"),
        ("plan", "all", "--hosts", "2"),
        ("hosts", "all", "--hosts", "1"),
        ("eval", "all", "--hosts", "2", "--batch", "2"),
        ("eval", "all", "--hosts", "2", "--batch", "2", "--host-by", "examples"),
        ("eval", "all", "--batch", "2", *BY_FILES),
        ("lint", "all", "--hosts", "2"),
        ("resume", "all", "--seen", "seen.txt", "--prove"),
    ],
    ids=" ".join,
)
def test_what_is_the_same_in_any_order_of_the_splits_goes_on(
    shardctl: Any, several: list[str], command: tuple[str, ...]
) -> None:
    reads = ("train+test+extra", "--take", "4", "-f", "tfds-ids")
    names = shardctl("simulate", *reads, *several)
    Path("seen.txt").write_text(names.stdout)
    done = shardctl(*command, "-f", "json", *several)
    assert done.exit_code == (command[0] == "lint")
    assert "'all' of several folders" in (done.stdout if command[0] == "lint" else done.stderr)
    if command[0] not in ("lint", "resume"):  # whose texts and digest name the spec
        spelled = shardctl(command[0], "train+test+extra", *command[2:], "-f", "json", *several)
        said = done.stdout.replace('"all"', '"train+test+extra"')
        said = said.replace("(builder, 'all'", "(builder, 'train+test+extra'")  # what advice calls
        assert json.loads(said) == json.loads(spelled.stdout)


@pytest.mark.parametrize("command", ["simulate", "snapshot"])
def test_all_in_one_folder_is_the_order_of_its_metadata(
    shardctl: Any, several: list[str], command: str
) -> None:
    options = ("-f", "json") if command != "snapshot" else ()
    done = shardctl(command, "all", *several[:2], *options)
    assert (done.exit_code, done.stderr) == (0, "")


def test_an_endless_reading_says_where_it_is_cut(shardctl: Any) -> None:
    cut = shardctl("simulate", "-d", "iris", "--repeat-files", "--take", "200", "-f", "ids")
    assert len(cut.stdout.split()) == 150
    assert "--repeat-files reads for ever" in cut.stderr
    whole = shardctl("simulate", "-d", "iris", "--repeat-files", "--take", "150", "-f", "ids")
    assert whole.stderr == ""


def test_a_seed_for_files_that_are_not_shuffled_is_refused(shardctl: Any) -> None:
    refused = shardctl("simulate", "-d", "iris", "--no-shuffle-files", "--shuffle-seed", "3")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "contradict" in refused.stderr


@pytest.mark.parametrize("setting", ["cycle: 0", "cycel: 3", "buffer: 0"])
def test_a_fault_in_the_file_of_settings_names_the_file_alone(shardctl: Any, setting: str) -> None:
    Path("shardctl.yaml").write_text(f"read: {{{setting}}}\n")
    refused = shardctl("simulate")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1
    assert "shardctl.yaml" in refused.stderr


def test_a_layout_beside_a_folder_promises_no_files(shardctl: Any, tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "a", splits={"train": [3, 4]})
    layout = _layout(tmp_path / "toy.yaml", train=[5])
    assert shardctl("layout", "-d", layout, "-d", str(folder)).stderr == ""


@pytest.mark.tensorflow
def test_a_plan_of_an_endless_reading_through_a_buffer_is_proved_and_verified(
    shardctl: Any, tmp_path: Path
) -> None:
    ref = _layout(tmp_path / "one.yaml", train=[10])
    made = shardctl(
        *("resume", "-d", ref, "--repeat-files", "--buffer", "5", "--buffer-seed", "3"),
        *("--consumed", "2", "--prove", "-f", "json"),
    )
    assert made.exit_code == 0
    proof = json.loads(made.stdout)["proof"]
    assert (proof["compared"], proof["lost"], proof["repeated"]) == (8, 0, 0)
    assert proof["moved"] <= 8
    (tmp_path / "plan.json").write_text(made.stdout)
    verified = shardctl("verify", "--plan", tmp_path / "plan.json", "-d", ref)
    assert (verified.exit_code, verified.stderr) == (0, "")


@pytest.mark.parametrize("mode", ["bogus", "exact-order"])
def test_a_log_has_no_order_to_continue(shardctl: Any, mode: str) -> None:
    Path("seen").write_text("")
    refused = shardctl("resume", "-d", "iris", "--seen", "seen", "--mode", mode)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--mode" in refused.stderr


def test_nothing_to_compare_is_not_a_proof(shardctl: Any) -> None:
    assert shardctl("verify", "-d", "iris", "--take", "0").exit_code == 2


def test_more_positions_than_memory_holds_are_refused(shardctl: Any) -> None:
    refused = shardctl("locate", "-d", "iris", "--epochs", 6 * 10**16, "--id", "3")
    assert refused.exit_code == 2
    assert "--epochs" in refused.stderr
