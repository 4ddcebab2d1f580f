"""`shardctl report`, from the command line to the page and the documents that it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from tests.cases import check_cases
from tests.cli.conftest import Outcome, Shardctl
from tests.tfds_datasets import write_dataset
from tests.verbs.settings_options import as_options, settings_values

_LAYOUT = """\
name: toy
splits:
  train: {shard_lengths: [30, 31, 0, 29, 30]}
  test: {num_examples: 41, num_shards: 2}
"""
_NAMES = [f"toy-train.tfrecord-{n:05d}-of-00005" for n in (4, 2, 0, 1, 3)]
_PARTS = ("layout", "strips", "quality", "hosts", "eval", "lint")


@pytest.fixture(autouse=True)
def toy(shardctl: Shardctl) -> Path:
    """The folder in which commands run, with a dataset and an order of its files."""
    Path("toy.yaml").write_text(_LAYOUT)
    Path("order.txt").write_text("\n".join(_NAMES))
    return Path.cwd()


def document(ran: Outcome) -> dict[str, Any]:
    assert ran.exit_code == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_page_goes_to_a_file_or_a_pipe(shardctl: Shardctl) -> None:
    ran = shardctl("report", "-d", "toy.yaml", "-o", "report.html")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "")
    page = Path("report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    piped = shardctl("report", "-d", "toy.yaml")
    assert (piped.exit_code, piped.stdout) == (0, page)


def test_a_terminal_is_no_place_for_a_page(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    ran = shardctl("report", "-d", "toy.yaml")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: --format html writes a page for browsers: name a file with --output FILE\n"
    )
    assert shardctl("report", "-d", "toy.yaml", "-f", "json").exit_code == 0


def test_each_part_is_what_its_command_writes(shardctl: Shardctl) -> None:
    order = ("-d", "toy.yaml", "--shuffle-seed", 5, "--buffer", 16, "--buffer-seed", 2)
    batch = ("--batch", 8)
    made = document(
        shardctl("report", "train", *order, *batch, "--hosts", 3, "--devices", 4, "-f", "json")
    )
    alone = {
        "quality": ("quality", "train", *order, *batch, "--host", "0/3"),
        "hosts": ("hosts", "train", *order, *batch, "--hosts", 3),
        "eval": ("eval", "-d", "toy.yaml", "--batch-per-device", 2, "--devices", 4, "--hosts", 3),
        "layout": ("layout", "train", "-d", "toy.yaml"),
    }
    for name, words in alone.items():
        expected = document(shardctl(*words, "-f", "json"))
        if name == "layout":
            (split,) = expected["splits"]
            del split["shards"]
            assert made[name]["splits"][0] == {key: split[key] for key in made[name]["splits"][0]}
        else:
            assert made[name] == expected, name
    linted = shardctl("lint", "train", *order, *batch, "--hosts", 3, "-f", "json")
    assert linted.exit_code == 1
    assert made["lint"] == json.loads(linted.stdout)
    assert list(made)[:3] == ["format_version", "kind", "dataset"]
    assert (made["kind"], made["spec"], made["num_hosts"]) == ("report", "train", 3)
    assert made["loaders"] is None


def test_findings_are_no_failure_and_warnings_are_said_once(shardctl: Shardctl) -> None:
    words = ("report", "-d", "toy.yaml", "--shuffle-files", "--buffer", 9)
    ran = shardctl(*words, "-f", "yaml")
    assert ran.exit_code == 0
    made = yaml.safe_load(ran.stdout)
    assert made["lint"]["findings"]
    assert ran.stderr.splitlines() == [f"warning: {text}" for text in made["warnings"]]
    assert ran.stderr.count("missing seeds are replaced") == 1
    assert made["predictable"] is False
    assert made["open"].startswith("--shuffle-files without a seed")
    assert made["assumed"] == {"shuffle_seed": 1, "buffer_seed": 2}


def test_the_settings_are_those_of_config(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text(
        "dataset: toy.yaml\nread:\n  cycle: 2\n  buffer: 9\n  buffer_seed: 3\n"
        "lint: {ignore: SC001, hosts: 4}\n"
    )
    words = ("--cycle", 3, "--batch", 4, "-f", "json")
    told = document(shardctl("config", *words))["settings"]
    made = document(shardctl("report", *words, "--eval", "test[:9]"))["settings"]
    by_name = {item["name"]: item for item in made}
    told = {item["name"]: item for item in told}
    changed = {name for name in told if told[name] != by_name[name]}
    assert changed == {"lint.eval"}
    assert by_name["lint.eval"]["value"] == ["test[:9]"]
    assert (by_name["lint.eval"]["origin"], by_name["lint.eval"]["by"]) == ("option", "--eval")


def test_lint_looks_at_what_shardctl_yaml_says(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text(
        "dataset: toy.yaml\nread: {epochs: 3, shuffle_seed: 1}\n"
        "lint:\n  hosts: 4\n  eval: ['train[50%:]']\n  take: 7\n  ignore: [SC006]\n"
        "  fail_on: error\n"
    )
    made = document(shardctl("report", "-f", "json"))
    ran = shardctl("lint", "-f", "json")
    assert ran.exit_code == 1
    assert made["lint"] == json.loads(ran.stdout)
    assert made["num_hosts"] == 4
    assert made["eval"]["spec"] == "train[50%:]"


@pytest.mark.long
@pytest.mark.parametrize("num_cases", [6, pytest.param(40, marks=pytest.mark.slow)])
def test_a_report_comes_for_any_settings_or_one_line_says_why_not(
    num_cases: int, shardctl: Shardctl
) -> None:
    def check(case: tuple[dict[str, object], str | None, str, list[str]]) -> None:
        values, spec, reads, more = case
        words = [*([] if spec is None else [spec]), *as_options(values), *more, "-d", reads]
        ran = shardctl("report", *words, "-f", "json")
        if ran.exit_code:
            assert ran.exit_code == 2
            assert ran.stdout == ""
            assert [line for line in ran.stderr.splitlines() if line.startswith("error: ")]
            return
        made = json.loads(ran.stdout)
        assert made["kind"] == "report"
        for name in _PARTS:
            part = made[name]
            if part is None:  # for one host, unless an evaluation is asked for
                assert name in ("hosts", "eval")
                assert made["num_hosts"] == 1
                assert name == "hosts" or "--eval" not in more
            else:
                assert set(part) == {"not_shown"} or len(part) > 1 or name == "layout"
        page = shardctl("report", *words, "-o", "report.html")
        assert page.exit_code == 0
        assert Path("report.html").read_text().rstrip().endswith("</html>")
        if not made["predictable"]:
            return
        one = more[:1] == ["--hosts"] and "host" not in values
        hosts = ["--host", f"0/{more[1]}"] if one else []
        given = words[: len(words) - 2 - len(more)]
        ran = shardctl("quality", *given, "-d", reads, *hosts, "-f", "json")
        if "not_shown" in made["quality"]:
            assert ran.exit_code == 2
            assert ran.stderr.splitlines()[-1] == f"error: {made['quality']['not_shown']}"
        else:
            assert json.loads(ran.stdout) == made["quality"]

    cases = st.tuples(
        settings_values,
        st.sampled_from([None, "train", "train[:9]", "train[:1]", "train[5:5]", "test+train"]),
        st.sampled_from(["toy.yaml", "mnist"]),
        st.sampled_from([[], ["--hosts", "3"], ["--eval", "train[:7]"], ["--devices", "3"]]),
    )
    check_cases(cases, check, num_cases)


def test_hostile_names_do_nothing(shardctl: Shardctl) -> None:
    folder = Path("<script>alert(1)<\u200e'\"&\n::error::x")
    folder.mkdir()
    name = "<img src=x onerror=alert(1)>\"'&;`$(x)`"
    splits = {
        "train": {"shard_lengths": [30, 40], "filenames": [f"a{name}", "b.tfrecord"]},
        "test": {"shard_lengths": [3], "filenames": ["]]></svg><script>"]},
    }
    (folder / "bad.yaml").write_text(json.dumps({"name": "toy", "splits": splits}))
    words = ("-d", str(folder / "bad.yaml"), "--eval", "test[:2]")
    ran = shardctl("report", *words, "-o", "report.html")
    assert ran.exit_code == 0, ran.stderr
    page = Path("report.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "\u200e" not in page
    assert not [line for line in page.splitlines() if line.lstrip().startswith("::")]
    made = document(shardctl("report", *words, "-f", "json"))
    assert made["dataset"]["name"] == "toy"


def test_bytes_are_those_of_the_files(shardctl: Shardctl, tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "data", splits={"train": [4, 4, 2], "test": [3]})
    sizes = [path.stat().st_size for path in sorted(folder.glob("toy-train*"))]
    made = document(shardctl("report", "--hosts", 2, "-d", folder, "-f", "json"))
    (train,) = made["layout"]["splits"]
    assert train["num_bytes"] == sum(sizes)
    _, files, examples = made["hosts"]["strategies"]
    assert [host["num_bytes"] for host in files["hosts"]] == [sizes[0] + sizes[2], sizes[1]]
    assert [host["num_bytes"] for host in examples["hosts"]] == [sum(sizes)] * 2
    assert (
        document(shardctl("hosts", "--hosts", 2, "-d", folder, "-f", "json"))["strategies"]
        == (made["hosts"]["strategies"])
    )


def test_what_tfds_cannot_read_is_no_affair_of_another_loader(shardctl: Shardctl) -> None:
    Path("records.yaml").write_text(f"{_LAYOUT}file_format: array_record\n")
    words = ("report", "-d", "records.yaml", "--shuffle-seed", 3, "-f", "json")
    assert "as_dataset" in shardctl(*words).stderr
    ran = shardctl(*words, "--loader", "grain")
    assert (ran.exit_code, ran.stderr) == (0, "")


# Two side by side: options go over settings files.


@pytest.fixture
def files(toy: Path) -> None:
    """Two settings files, a pinned order and a plan."""
    for name, block in (("a", 2), ("b", 3)):
        Path(f"{name}.yaml").write_text(f"dataset: toy.yaml\nread:\n  block: {block}\n")


def pin(shardctl: Shardctl, *blocks: int) -> None:
    for block in blocks:
        words = ("-d", "toy.yaml", "--block", block, "-o", f"{block}.order.yaml")
        assert shardctl("snapshot", *words).exit_code == 0


def compared(shardctl: Shardctl, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = document(shardctl("report", "--compare", *arguments, "-f", "json"))
    return found["compared"]  # type: ignore[no-any-return]


def test_two_side_by_side_are_as_their_commands_write_them(shardctl: Shardctl, files: None) -> None:
    pin(shardctl, 2, 3)
    for pair in (
        ("2.order.yaml", "b.yaml"),
        ("2.order.yaml", "3.order.yaml"),
        ("a.yaml", "b.yaml"),
    ):
        found = compared(shardctl, *pair)
        assert found["equal"] is False
        first = found["diff"]["first_difference"]
        # Of files of 30, 31 and more in blocks of 2: 0 1 30 .., in blocks of 3: 0 1 2 ..
        assert (first["position"], first["expected"], first["actual"]) == (2, 30, 2)
    alone = document(shardctl("quality", "-d", "toy.yaml", "--block", 3, "-f", "json"))
    assert {**found["b"]["quality"], "dataset": alone["dataset"]} == alone
    assert (found["b"]["is_snapshot"], found["b"]["num_examples"]) == (False, 120)
    differing = [one for one in found["settings"] if one["differs"]]
    assert differing == [{"name": "block", "a": 2, "b": 3, "differs": True}]
    assert compared(shardctl, "2.order.yaml", "a.yaml")["equal"] is True


def test_options_go_over_both_settings_files(shardctl: Shardctl, files: None) -> None:
    found = compared(shardctl, "a.yaml", "b.yaml", "--block", 5, "-d", "mnist")
    assert found["equal"] is True
    for side in (found["a"], found["b"]):
        assert side["pipeline"]["block"] == 5
        assert side["dataset"]["name"] == "mnist"
    # A snapshot beside one stays as it was pinned.
    pin(shardctl, 3)
    assert compared(shardctl, "3.order.yaml", "a.yaml", "--block", 3)["equal"] is True


EDITS: dict[str, Callable[[str], str]] = {
    "a setting": lambda text: text.replace("shuffle_seed: 1", "shuffle_seed: 3"),
    "no kind": lambda text: text.replace("kind: snapshot\n", ""),
    "no version": lambda text: text.replace("format_version: 1\n", ""),
    "no checksum": lambda text: text.partition("checksum:")[0],
    "a kind": lambda text: text.replace("kind: snapshot", "kind: index"),
    "cut off": lambda text: text[: len(text) // 2],
    "cut off in a line": lambda text: text.partition("fingerprint: 'sha")[0] + "fingerprint: 'sha",
    "a conflict": lambda text: f"<<<<<<< HEAD\n{text}=======\n>>>>>>> b\n",
}


@pytest.mark.parametrize("edit", EDITS)
def test_compare_refuses_an_edited_snapshot_as_diff_does(shardctl: Shardctl, edit: str) -> None:
    Path("toy.yaml").write_text("name: toy\nsplits: {train: {shard_lengths: [3, 4]}}\n")
    for seed in "12":
        shardctl("snapshot", "-d", "toy.yaml", "--shuffle-seed", seed, "-o", f"{seed}.yaml")
    text = Path("1.yaml").read_text()
    Path("1.yaml").write_text(EDITS[edit](text))
    assert Path("1.yaml").read_text() != text
    for files in (["1.yaml", "2.yaml"], ["2.yaml", "1.yaml"]):
        refused = shardctl("diff", *files)
        shown = shardctl("report", "--compare", *files)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.startswith("error: 1.yaml")
        assert shown == refused
