"""One fault, told alike by Python, the command line and shardctl.yaml."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import shardctl as api
from shardctl.dataset.dataset import Dataset
from shardctl.errors import ShardctlError
from shardctl.settings.table import SETTING_BY_FIELD, SETTINGS, Switch
from shardctl.spec.host import Host
from tests.cli.conftest import Shardctl

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [4, 0, 5]}}\n"
ORDERED = f"ordered: true\n{LAYOUT}"
MOST = 2**63 - 1
RANGE = f"a number from 1 to {MOST} is needed"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Settings that do not work, what is said about them, and the key that it points at."""

    settings: dict[str, Any]
    options: str
    key: str
    layout: str = LAYOUT


FAULTS = {
    "stages that are none": Fault(
        settings={"stages": "cache | shufle(9)"},
        options="--stages 'cache | shufle(9)': at 'shufle(9)': no stage 'shufle'; did you mean",
        key="stages",
    ),
    "stages and what they say": Fault(
        settings={"stages": "shuffle(9, seed=1)", "batch": 3},
        options="--stages says all that is behind the reader, so --batch 3 has no place beside",
        key="stages",
    ),
    "stages whose reader has no such setting": Fault(
        settings={"stages": "read(cycle=0)"},
        options="--stages: read: cycle=0: a number from 1 to",
        key="stages",
    ),
    "too small": Fault(
        settings={"buffer": 0},
        options=f"--buffer '0': a number of examples from 1 to {MOST} is needed, or -2 for the",
        key="buffer",
    ),
    "too large": Fault(
        settings={"block": MOST + 1},
        options=f"--block '{MOST + 1}': {RANGE}",
        key="block",
    ),
    "no such word": Fault(
        settings={"host_by": "shards"},
        options="--host-by 'shards': choose from even, files, examples",
        key="host_by",
    ),
    "no such loop": Fault(
        settings={"loop": "jax"},
        options="--loop 'jax': choose from python, keras-fit",
        key="loop",
    ),
    "machine not named": Fault(
        settings={"cycle": "auto"},
        options="--cycle auto needs --cpus N: ",
        key="cycle",
    ),
    "CPUs for nothing": Fault(
        settings={"cpus": 8},
        options="--cpus is read with --cycle auto only",
        key="cpus",
    ),
    "two orders of files": Fault(
        settings={"reverse": True, "file_order": ("b", "a")},
        options="--reverse and --file-order are two orders of the files; choose one",
        key="reverse",
    ),
    "a remainder of nothing": Fault(
        settings={"drop_remainder": True},
        options="--drop-remainder needs --batch N: it drops the last batch",
        key="drop_remainder",
    ),
    "a seed of no buffer": Fault(
        settings={"buffer_seed": 1},
        options="--buffer-seed and --buffer-reshuffle need --buffer N",
        key="buffer_seed",
    ),
    "no buffer to reshuffle": Fault(
        settings={"buffer_reshuffle": False},
        options="--buffer-seed and --buffer-reshuffle need --buffer N",
        key="buffer_reshuffle",
    ),
    "files without a seed": Fault(
        settings={"shuffle_files": True},
        options="--shuffle-files without a seed has another order in each run; "
        "give --shuffle-seed N",
        key="shuffle_files",
    ),
    "a global seed alone": Fault(
        settings={"shuffle_files": True, "global_seed": 1},
        options="--shuffle-files with a global seed only: ",
        key="shuffle_files",
    ),
    "a buffer without a seed": Fault(
        settings={"buffer": 5},
        options="--buffer without a seed has another order in each run; only the seed that the run "
        "itself has will do: --buffer-seed N of its ds.shuffle, or --global-seed N where",
        key="buffer",
    ),
    "as it comes": Fault(
        settings={"deterministic": False},
        options="deterministic=False hands out examples as their decoding ends, in another order "
        "each run; leave it out, or use --deterministic",
        key="deterministic",
    ),
    "a buffer that never fills": Fault(
        settings={"buffer": -2, "buffer_seed": 1, "repeat_files": True},
        options="--buffer -2 (the whole dataset) of --repeat-files, which has no end: the buffer "
        "never fills; give --buffer N",
        key="buffer",
    ),
    "a pass after no end": Fault(
        settings={"repeat_files": True, "pass_index": 1},
        options="--pass after a pass of --repeat-files: ",
        key="pass",
    ),
    "an ordered dataset": Fault(
        settings={"shuffle_seed": 1, "cycle": 2},
        options="this is an ordered dataset (disable_shuffling=True): TFDS refuses "
        "--shuffle-files and --cycle 2, because",
        key="cycle",
        layout=ORDERED,
    ),
    "too many epochs": Fault(
        settings={"epochs": MOST},
        options=f"--epochs {MOST} of 9 examples: positions go up to {MOST}",
        key="epochs",
    ),
    "fewer files than hosts": Fault(
        settings={"host": Host(index=1, count=3), "host_by": "files"},
        options="--host '1/3' by files: 2 file instructions for 3 hosts, TFDS needs one a host at "
        "least; split examples with --host-by even",
        key="host",
    ),
}
each_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)


def arguments(settings: dict[str, Any], folder: Path) -> list[str]:
    """Return settings as they are given on the command line."""
    words: list[str] = []
    for field, value in settings.items():
        setting = SETTING_BY_FIELD[field]
        if isinstance(setting.kind, Switch):
            words.append(setting.option if value else f"--no-{setting.option[2:]}")
            continue
        if field == "file_order":
            (folder / "order.txt").write_text("".join(f"{name}\n" for name in value))
        given = folder / "order.txt" if field == "file_order" else value
        words += [setting.option, str(given)]
    return words


@each_fault
def test_the_command_line_names_options(fault: Fault, shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(fault.layout)
    ran = shardctl("simulate", "-d", "toy.yaml", *arguments(fault.settings, Path.cwd()))
    expected = fault.options
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith(f"error: {expected}")


@each_fault
@pytest.mark.parametrize("dash", [False, True], ids=["_", "-"])
def test_shardctl_yaml_names_file_line_and_key(
    fault: Fault, shardctl: Shardctl, dash: bool
) -> None:
    Path("toy.yaml").write_text(fault.layout)
    read = {}
    for field, value in fault.settings.items():
        setting = SETTING_BY_FIELD[field]
        read[setting.name.replace("_", "-") if dash else setting.name] = (
            value if isinstance(value, str | int) else setting.kind.to_document(value)
        )
    text = yaml.safe_dump({"dataset": "toy.yaml", "read": read}, sort_keys=False)
    Path("shardctl.yaml").write_text(text)
    key = fault.key.replace("_", "-") if dash else fault.key
    line = 1 + next(i for i, words in enumerate(text.splitlines()) if words.startswith(f"  {key}:"))
    ran = shardctl("simulate")
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith(f"error: {Path('shardctl.yaml').resolve()}:{line}: ")


def test_every_least_value_is_enforced_alike(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT)
    bounded = [(s, s.kind.least) for s in SETTINGS if s.kind.least is not None]
    assert len(bounded) > 5
    for setting, least in bounded:
        low = least - 1
        with pytest.raises(ShardctlError, match=f"^{setting.field}={low}: a number "):
            api.ReadSettings(**dict[str, Any]({setting.field: low}))
        ran = shardctl("simulate", "-d", "toy.yaml", setting.option, low)
        assert ran.stderr.startswith(f"error: {setting.option} '{low}': a ")
        Path("shardctl.yaml").write_text(f"read:\n\n  {setting.name}: {low}\n")
        ran = shardctl("simulate", "-d", "toy.yaml")
        assert f"shardctl.yaml:3: {setting.field}={low}: a number " in ran.stderr
        Path("shardctl.yaml").unlink()


@pytest.mark.parametrize(
    ("read", "options", "message"),
    [
        ("batch: 4", ["--drop-remainder", "--shuffle-files"], "--shuffle-files without a seed"),
        ("buffer-reshuffle: false", ["--buffer-seed", "1"], "--buffer-seed and --buffer-resh"),
        ("shuffle-files: true", ["--shuffle-files"], "--shuffle-files without a seed"),
        (
            "buffer: -2",
            ["--repeat-files", "--buffer-seed", "3"],
            "{}:3: --buffer -2 (the whole dataset) of --repeat-files, which has no end: the "
            "buffer never fills; give --buffer N",
        ),
        (
            "repeat-files: true",
            ["--buffer", "-2", "--buffer-seed", "3"],
            "--buffer -2 (the whole dataset) of --repeat-files",
        ),
        (
            "cycel: 3",
            [],
            "{}:3: cycel: no such setting; did you mean cycle? there are: cycle, cpus, ",
        ),
        ("cycle: three", [], '{}:3: cycle="three": a whole number is needed'),
        ("cycle: '3'", [], '{}:3: cycle="3": a whole number is needed'),
        ("reverse: 'no'", [], '{}:3: reverse="no": true or false is needed'),
        ("host: 4/4", [], '{}:3: host="4/4": host 4 of 4: hosts count from 0 to 3'),
        ("batch: 3\n  batch_: 3", [], "{}:4: batch_: no such setting"),
        (
            "shuffle-seed: 3\n  shuffle_seed: 3",
            [],
            "{}:4: shuffle_seed: the same setting as shuffle-seed",
        ),
        ('"{cycle}": 3', [], "{}:3: {cycle}: no such setting"),
    ],
)
def test_who_set_a_value_is_told_of_it(
    shardctl: Shardctl, read: str, options: list[str], message: str
) -> None:
    Path("toy.yaml").write_text(LAYOUT)
    Path("shardctl.yaml").write_text(f"dataset: toy.yaml\nread:\n  {read}\n")
    ran = shardctl("simulate", *options)
    expected = message.replace("{}", str(Path("shardctl.yaml").resolve()))
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert expected in ran.stderr
    assert ran.stderr.startswith("error: /") == message.startswith("{}")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A call of the API that is refused, and the command that asks the same."""

    call: Callable[[Dataset], object]
    command: str
    options: str


QUESTIONS = {
    "consumed": Question(
        call=lambda d: api.resume(d, consumed=12),
        command="resume --consumed 12",
        options="--consumed '12': the order has 9 examples; a longer job has more --epochs, or is "
        "in a later --pass",
    ),
    "steps": Question(
        call=lambda d: api.resume(d, settings=api.ReadSettings(batch=2), steps=7),
        command="resume --steps 7 --batch 2",
        options="--steps '7': the order has 5 batches of 2; a longer job has more --epochs, or is "
        "in a later --pass",
    ),
    "steps without batches": Question(
        call=lambda d: api.resume(d, steps=7),
        command="resume --steps 7",
        options="--steps needs --batch N, or a batch among the --stages: a step is a batch",
    ),
    "a mode": Question(
        call=lambda d: api.resume(d, consumed=1, mode="fast"),  # type: ignore[arg-type]
        command="resume --consumed 1 --mode fast",
        options="--mode 'fast': choose from exactly-once, exact-order, at-most-once, at-least-once",
    ),
    "no seed to resume": Question(
        call=lambda d: api.resume(d, settings=api.ReadSettings(shuffle_files=True), consumed=1),
        command="resume --consumed 1 --shuffle-files",
        options="--shuffle-files without a seed has another order in each run; give "
        "--shuffle-seed N; or plan from what was logged, with --seen FILE",
    ),
    "a host among all": Question(
        call=lambda d: api.resume_on_hosts(
            d,
            settings=api.ReadSettings(host=Host(index=0, count=2)),
            hosts=2,
            to_hosts=3,
            consumed=[1],
        ),
        command="resume --host 0/2 --hosts 2 --to-hosts 3 --consumed 1",
        options="--host with --to-hosts: all hosts are planned at once; leave --host out",
    ),
    "hosts without end": Question(
        call=lambda d: api.resume_on_hosts(
            d, settings=api.ReadSettings(repeat_files=True), hosts=2, to_hosts=3, consumed=[1]
        ),
        command="resume --repeat-files --hosts 2 --to-hosts 3 --consumed 1",
        options="--repeat-files with --to-hosts: the epochs",
    ),
    "counts of hosts": Question(
        call=lambda d: api.resume_on_hosts(d, hosts=2, to_hosts=3, consumed=[1, 2, 3]),
        command="resume --hosts 2 --to-hosts 3 --consumed 1,2,3",
        options="--consumed names 3 counts for --hosts 2: give one for all, or one a host",
    ),
    "a count of one host": Question(
        call=lambda d: api.resume_on_hosts(d, hosts=2, to_hosts=3, consumed=[1, 6]),
        command="resume --hosts 2 --to-hosts 3 --consumed 1,6",
        options="host 1 of 2: --consumed '6': the order has 4 examples",
    ),
    "hosts": Question(
        call=lambda d: api.resume_on_hosts(d, hosts=100_001, to_hosts=3, consumed=[1]),
        command="resume --hosts 100001 --to-hosts 3 --consumed 1",
        options="--hosts 100001: a number from 1 to 100000 is needed",
    ),
    "new hosts": Question(
        call=lambda d: api.resume_on_hosts(d, hosts=2, to_hosts=100_001, consumed=[1]),
        command="resume --hosts 2 --to-hosts 100001 --consumed 1",
        options="--to-hosts 100001: a number from 1 to 100000 is needed",
    ),
    "a log under ds.shard": Question(
        call=lambda d: api.resume_unseen(
            d,
            settings=api.ReadSettings(host=Host(index=0, count=2), host_by="examples"),
            seen=np.array([1]),
        ),
        command="resume --seen seen.txt --host 0/2 --host-by examples",
        options="--seen with --host-by examples: which examples are a host's own depends on the "
        "order that was read; gather the logs of all hosts and share the rest with --to-hosts N",
    ),
    "skip": Question(
        call=lambda d: api.simulate(d, skip=10),
        command="simulate --skip 10",
        options="--skip 10: the order has 9 examples",
    ),
    "a step without batches": Question(
        call=lambda d: api.locate(d, step=1),
        command="locate --step 1",
        options="--step needs --batch N: a step is a batch",
    ),
    "a position": Question(
        call=lambda d: api.locate(d, queries=[api.Query(kind="position", value="x")]),
        command="locate --position x",
        options="--position 'x': a number from 0 is needed",
    ),
    "classes": Question(
        call=lambda d: api.quality(d, num_classes=10),
        command="quality --classes 10",
        options="--classes 10: train has 9 examples; give 1 to that many",
    ),
    "two numbers of hosts": Question(
        call=lambda d: api.lint(
            d,
            settings=api.ReadSettings(host=Host(index=1, count=8)),
            usage=api.Usage(hosts=4),
        ),
        command="lint --host 1/8 --hosts 4",
        options="--host 1/8 and --hosts 4: two numbers of hosts; choose one",
    ),
    "a code": Question(
        call=lambda d: api.lint(d, ignore=["E501"]),
        command="lint --ignore E501",
        options="--ignore 'E501': no finding has this code; there are: SC001, ",
    ),
    "a batch": Question(
        call=lambda d: api.evaluate(d, batch=2**31),
        command=f"eval --batch {2**31}",
        options=f"--batch '{2**31}': a number from 1 to {2**31 - 1} is needed",
    ),
    "devices": Question(
        call=lambda d: api.evaluate(d, batch=1, devices=10**7),
        command="eval --batch 1 --devices 10000000",
        options="--devices '10000000': a number from 1 to 1000000 is needed",
    ),
    "too many files": Question(
        call=lambda d: api.resume(
            d, settings=api.ReadSettings(repeat_files=True, epochs=2**50), consumed=0
        ),
        command=f"resume --repeat-files --epochs {2**50} --consumed 0",
        options="--repeat-files: ",
    ),
    "epochs of hosts": Question(
        call=lambda d: api.hosts(d, hosts=2, settings=api.ReadSettings(epochs=2**62)),
        command=f"hosts --hosts 2 --epochs {2**62}",
        options=f"--epochs {2**62} of 9 examples is too many",
    ),
}
each_question = pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)


@each_question
def test_an_argument_of_a_function_is_an_option_of_its_command(
    question: Question, shardctl: Shardctl
) -> None:
    Path("toy.yaml").write_text(LAYOUT)
    Path("seen.txt").write_text("toy-train.tfrecord-00000-of-00003__1\n")
    with pytest.raises(ShardctlError) as caught:
        question.call(api.read_dataset("toy.yaml"))
    if "choose" not in question.options:  # which the command itself refuses
        assert question.options.startswith(str(caught.value)[: len(question.options)])
    ran = shardctl(*question.command.split(), "-d", "toy.yaml")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.splitlines()[-1].startswith(f"error: {question.options}")


def test_warnings_and_advice_too(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT)
    dataset = api.read_dataset("toy.yaml")
    settings = api.ReadSettings(buffer=3, global_seed=1)
    (warning,) = api.simulate(dataset, settings=settings).warnings
    assert warning.startswith("--buffer takes its seed from --global-seed: ")
    ran = shardctl("simulate", "-d", "toy.yaml", "--buffer", 3, "--global-seed", 1)
    assert ran.stderr.startswith("warning: --buffer takes its seed from --global-seed: ")
    findings = {f.rule.code: f for f in api.lint(dataset, settings=settings).findings}
    assert findings["SC013"].fix == "--buffer-seed N"
    ran = shardctl("lint", "-d", "toy.yaml", "--buffer", 3, "--global-seed", 1)
    assert "fix: --buffer-seed N\n" in ran.stdout
    assert ran.stdout.isascii()
