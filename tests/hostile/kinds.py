"""Cases of every kind of input: files to write, and the commands that read them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.hostile.mutations import (
    SPECS,
    TEXTS,
    as_json,
    as_yaml,
    mutated,
    mutated_bytes,
    mutated_lines,
)
from tests.hostile.originals import FEATURES, INFO, LAYOUT, PROJECT

# Random command lines over all commands and all of their options.


_LEFT_OUT = ("verify",)  # TensorFlow takes seconds
_FILES = ("l.yaml", "plan0.yaml", "snapshot0.yaml", "missing", "::error::", "l.yaml/x", ".", "-")
_NUMBERS = (
    *("0", "1", "2", "3", "5", "7", "16", "1000", "1_000", "-1", "-2", "1e3", "1.5", "٣", "0x10"),
    *("9223372036854775807", "9223372036854775808", "4611686018427387904", "1000000000000", "nan"),
)
# Each takes a text of this kind; the others take numbers.
_VALUES: dict[str, tuple[str, ...]] = {
    "--dataset": ("l.yaml", "l.yaml", "mnist", "imagenet2012", "coco/2017", "mnist:9", "no://x"),
    "--data-dir": (".", "missing", "::error::"),
    "--format": ("table", "json", "yaml", "csv", "jsonl", "ids", "tfds-ids", "github"),
    "--output": ("out", "out.yaml", "out.json", "missing/out", ".", "-", "l.yaml/out", ""),
    "--host": ("0/1", "1/2", "3/2", "0/1000000", "-1/2", "1/-2", "a/b"),
    "--hosts": ("1", "2", "8", "1-8", "1,2,4", "0", "1000000", "1-1000000", "-"),
    "--host-by": ("even", "files", "examples"),
    "--loop": ("python", "keras-fit"),
    "--file-order": _FILES,
    "--seen": _FILES,
    "--plan": _FILES,
    "--spec": SPECS,
    "--eval": SPECS,
    "--cycle": ("1", "3", "16", "auto", "0", "1000000"),
    "--explain": ("SC001", "SC999"),
    "--mode": ("exactly-once", "exact-order"),
}


@cache
def _commands() -> dict[str, tuple[list[Any], list[Any]]]:
    """Return the options and the arguments of each command."""
    from shardctl.cli.app import application
    from shardctl.cli.main import COMMANDS

    group = application(*COMMANDS)
    context = group.make_context("shardctl", [], resilient_parsing=True)
    found = {}
    for name, command in group.commands.items():
        parameters = command.get_params(context)
        options = [one for one in parameters if one.param_type_name == "option"]
        found[name] = options, [one for one in parameters if one not in options]
    return found


def command_line(rng: random.Random) -> list[str]:
    """Return the words after `shardctl`: often nearly right, at times anything."""
    commands = _commands()
    name = rng.choice([name for name in commands if name not in _LEFT_OUT])
    options, arguments = commands[name]
    words: list[str] = []
    for argument in arguments:
        for _ in range(rng.choice((0, 1, 1, 2)) if argument.nargs == -1 else 1):
            plausible = ("train", "test", "train[:50%]", "snapshot0.yaml", "plan0.yaml")
            if name == "help":
                plausible = ("plan", "lint", "orders", "resume", "resum")
            words.append(_text(rng, plausible))
    if rng.random() < 0.85 and any("-d" in option.opts for option in options):
        words += ["-d", "l.yaml"]
    for option in rng.sample(options, min(rng.choice((0, 1, 1, 2, 3, 5)), len(options))):
        if "--help" in option.opts:
            continue
        long = max(rng.choice((option.opts, option.secondary_opts)) or option.opts, key=len)
        words.append(long)
        if not option.is_flag:
            value = _text(rng, _VALUES.get(long, _NUMBERS))
            if rng.random() < 0.3:
                words[-1] += f"={value}"
            else:
                words.append(value)
    if rng.random() < 0.1:
        words.insert(rng.randint(0, len(words)), _text(rng, TEXTS))
    if rng.random() < 0.03:
        name = _text(rng, TEXTS)
    return [name, *words]


def environment(rng: random.Random) -> dict[str, str]:
    """Return variables that shardctl reads, with any value."""
    names = ("SHARDCTL_DATASET", "TFDS_DATA_DIR", "NO_COLOR", "TERM", "COLUMNS", "HOME")
    return {rng.choice(names): _text(rng, TEXTS)}


def _text(rng: random.Random, plausible: tuple[str, ...]) -> str:
    """Return a word that a program can be given: no NUL, no surrogate but those of bytes."""
    text = rng.choice(plausible if rng.random() < 0.8 else TEXTS)
    return text.replace("\0", "").replace("\ud800", "\udc80")


# What no command line reaches: a program of Python, whose arguments follow.
_READ_POSITION = """
import sys
from shardctl.errors import ShardctlError
from shardctl.saved.position_file import read_position
try:
    read_position(sys.argv[1])
except ShardctlError as error:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(2)
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is tried: files, then commands; with `edited` no command may call the files right."""

    commands: Sequence[Sequence[str]]
    files: Mapping[str, bytes] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    edited: bool = False
    pipe: str | None = None  # the name of a pipe that nobody writes to


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The valid files that cases are made of."""

    files: Mapping[str, bytes]
    records: Mapping[str, bytes]

    def starting(self, name: str) -> list[str]:
        """Return the names of the files that begin so."""
        return [file for file in self.files if file.startswith(name)]


_FORMATS = ("table", "json", "yaml", "csv")


def _reading(dataset: str, rng: random.Random) -> list[str]:
    """Return a command that reads a dataset."""
    form = ("-f", rng.choice(_FORMATS))
    commands: Sequence[Sequence[str]] = (
        ("layout", *form),
        ("layout", "train", "--all", *form),
        ("plan", "all", "--hosts", "3", *form),
        ("plan", "train[:50%]+test", *form),
        ("simulate", "train", "--take", "50", "-f", rng.choice((*_FORMATS, "jsonl", "ids"))),
        ("simulate", "all", "--shuffle-seed", "3", "--take", "9", "-f", "tfds-ids"),
        ("simulate", "train", "--buffer", "5", "--buffer-seed", "1", "--take", "20"),
        ("locate", "all", "--position", "3", "--id", "train:1", *form),
        ("resume", "train", "--consumed", "3", "--shuffle-seed", "1", *form),
        ("resume", "train", "--consumed", "3", "--hosts", "1", "--to-hosts", "2", *form),
        ("hosts", "train", "--hosts", "4", "--batch", "2", *form),
        ("hosts", "train", "--hosts", "1-8", *form),
        ("eval", "test", "--hosts", "2", "--devices", "2", "--batch", "4", *form),
        ("quality", "train", *form),
        ("lint", "train", "--eval", "test", "-f", rng.choice((*_FORMATS, "github"))),
        ("snapshot", "train+test", "-f", rng.choice(("yaml", "json"))),
        ("snapshot", "train", "-o", "out.yaml"),
    )
    return [*rng.choice(commands), "-d", dataset]


def metadata(rng: random.Random, _: Sources) -> Case:
    """dataset_info.json and features.json of a folder."""
    info, features = as_json(INFO, rng), as_json(FEATURES, rng)
    draw = rng.random()
    if draw < 0.7:
        info = as_json(mutated(INFO, rng), rng)
    elif draw < 0.9:
        info = mutated_bytes(info, rng)
    else:
        features = as_json(mutated(FEATURES, rng), rng)
    folder = rng.choice(("toy", "data/toy/plain/1.0.0", "data/toy/::error::/1.0.0"))
    files = {f"{folder}/dataset_info.json": info, f"{folder}/features.json": features}
    listing = ["list", "--data-dir", "data", "-f", rng.choice(_FORMATS)]
    commands = [_reading(folder, rng), listing if rng.random() < 0.1 else _reading(folder, rng)]
    return Case(files=files, commands=commands)


def layouts(rng: random.Random, _: Sources) -> Case:
    """Layout files."""
    name = rng.choice(("l.yaml", "l.json"))
    write = as_yaml if name == "l.yaml" else as_json
    if rng.random() < 0.75:
        data = write(mutated(LAYOUT, rng), rng)
    else:
        data = mutated_bytes(write(LAYOUT, rng), rng)
    return Case(files={name: data}, commands=[_reading(name, rng), _reading(name, rng)])


def settings(rng: random.Random, sources: Sources) -> Case:
    """shardctl.yaml."""
    data = as_yaml(mutated(PROJECT, rng), rng)
    if rng.random() < 0.25:
        data = mutated_bytes(as_yaml(PROJECT, rng), rng)
    files = {"l.yaml": sources.files["l.yaml"], "shardctl.yaml": data}
    form = rng.choice(_FORMATS)
    commands = (
        ["simulate", "-f", form],
        ["plan", "train", "-f", form],
        ["lint", "-f", rng.choice((*_FORMATS, "github"))],
        ["resume", "--consumed", "3", "-f", form],
        ["list"],
        ["config", "-f", rng.choice(("table", "json", "yaml", "csv"))],
    )
    return Case(files=files, commands=[rng.choice(commands)])


def plans(rng: random.Random, sources: Sources) -> Case:
    """Plan files of `resume`."""
    name, data, edited = _sealed("plan", rng, sources)
    chosen = ["-d", "l.yaml", "-f", rng.choice(("table", "json"))]
    commands = (
        [["resume", "--plan", name, *chosen], ["diff", name, "other", *chosen[2:]]],
        [["resume", "--plan", name, *chosen[2:]]],  # where it says that its dataset is
    )
    files = {name: data, "l.yaml": sources.files["l.yaml"], "other": sources.files[name]}
    return Case(files=files, commands=rng.choice(commands), edited=edited)


def snapshots(rng: random.Random, sources: Sources) -> Case:
    """Snapshot files."""
    name, data, edited = _sealed("snapshot", rng, sources)
    form = ["-f", rng.choice(("table", "json", "github"))]
    commands = [["diff", name, "-d", "l.yaml", *form], ["diff", name, "other", *form]]
    commands.append(["diff", "--each", name, "other", *form])
    if not edited:
        commands.append(["diff", name, "-d", "l.yaml", "--update"])
    files = {name: data, "l.yaml": sources.files["l.yaml"], "other": sources.files[name]}
    return Case(files=files, commands=commands, edited=edited)


def positions(rng: random.Random, sources: Sources) -> Case:
    """Position files, as `Position.restore` reads them."""
    name, data, edited = _sealed("position", rng, sources)
    return Case(files={name: data}, commands=[["-c", _READ_POSITION, name]], edited=edited)


def _sealed(kind: str, rng: random.Random, sources: Sources) -> tuple[str, bytes, bool]:
    """Return (name, contents, whether it says something else than what was sealed)."""
    name = rng.choice(sources.starting(kind))
    data = sources.files[name]
    if rng.random() < 0.7:
        document = mutated(_parsed(data), rng)
        write = as_json if name.endswith("json") else as_yaml
        changed = write(document, rng)
    else:
        changed = mutated_bytes(data, rng)
    try:
        edited = content_of(changed) != content_of(data)
    except Exception:
        edited = True
    return name, changed, edited


def content_of(data: bytes) -> str:
    """Return what a document says, as text.

    What was proved about a plan is no part of it, nor is where a dataset is looked for.
    """
    document = _parsed(data)
    if isinstance(document, dict):
        apart = ("proof", "digest", "refs")
        document = {key: value for key, value in document.items() if key not in apart}
    text = json.dumps(document, sort_keys=True, default=str)
    return json.dumps(json.loads(text, object_hook=_with_lengths_apart))


def _with_lengths_apart(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping with the lengths of its shards one by one, however they are spaced."""
    lengths = mapping.get("shard_lengths")
    return {**mapping, "shard_lengths": lengths.split()} if isinstance(lengths, str) else mapping


@cache
def _parsed(data: bytes) -> Any:
    import yaml

    try:
        return json.loads(data)
    except ValueError:
        return yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def logs(rng: random.Random, sources: Sources) -> Case:
    """Logs of `--seen`, lists of `--file-order`, and what `locate` reads from stdin."""
    seen, order = sources.files["seen.txt"], sources.files["order.txt"]
    ids = b"".join(b"%d\n" % number for number in range(9))
    change = mutated_lines if rng.random() < 0.6 else mutated_bytes
    chosen = ["-d", "l.yaml", "-f", rng.choice(_FORMATS)]
    draw = rng.random()
    files = {"l.yaml": sources.files["l.yaml"]}
    if draw < 0.01:
        return Case(files=files, commands=[_reading_a_pipe(rng)], pipe="pipe")
    if draw < 0.5:
        files["log"] = change(seen, rng)
        return Case(files=files, commands=[["resume", "train", "--seen", "log", *chosen]])
    if draw < 0.75:
        files["order"] = change(order, rng)
        command = ["simulate", "train", "--file-order", "order", *chosen]
        return Case(files=files, commands=[command])
    option, lines = rng.choice((("--id", ids), ("--tfds-id", seen), ("--position", ids)))
    command = ["locate", "train", option, "-", *chosen]
    return Case(files=files, commands=[command], stdin=change(lines, rng))


def _reading_a_pipe(rng: random.Random) -> list[str]:
    """Return a command that is given a pipe in place of a file."""
    commands = (
        ["resume", "train", "-d", "l.yaml", "--seen", "pipe"],
        ["simulate", "train", "-d", "l.yaml", "--file-order", "pipe"],
        ["resume", "-d", "l.yaml", "--plan", "pipe"],
        ["diff", "pipe", "-d", "l.yaml"],
        ["layout", "-d", "pipe"],
    )
    return list(rng.choice(commands))


def arguments(rng: random.Random, sources: Sources) -> Case:
    """Random command lines, and variables of the environment."""
    return Case(
        files={name: sources.files[name] for name in ("l.yaml", "plan0.yaml", "snapshot0.yaml")},
        commands=[command_line(rng)],
        env=environment(rng) if rng.random() < 0.2 else {},
        stdin=rng.choice((b"", b"1\n2\n", b"\xff\x00")),
    )


def records(rng: random.Random, sources: Sources) -> Case:
    """Record files whose contents are checked; TFRecord has a checksum over every byte."""
    form = rng.choice(sorted(sources.records))
    data = sources.records[form]
    names = [f"toy-train.{form}-{index:05}-of-00003" for index in range(3)]
    damaged = mutated_bytes(data, rng) if rng.random() < 0.95 else data
    files = {f"toy/{name}": data for name in names}
    files[f"toy/{names[rng.randrange(3)]}"] = damaged
    split = {"name": "train", "shardLengths": ["5", "5", "5"], "numBytes": "10"}
    info = {"name": "toy", "version": "1.0.0", "fileFormat": form, "splits": [split]}
    files["toy/dataset_info.json"] = json.dumps(info).encode()
    command = ["verify", "--files"] if rng.random() < 0.9 else ["layout"]
    return Case(
        files=files,
        commands=[[*command, "-d", "toy", "-f", rng.choice(_FORMATS)]],
        edited=command[0] == "verify" and form == "tfrecord" and damaged != data,
    )


KINDS: Mapping[str, Callable[[random.Random, Sources], Case]] = {
    "metadata": metadata,
    "layouts": layouts,
    "settings": settings,
    "plans": plans,
    "snapshots": snapshots,
    "positions": positions,
    "logs": logs,
    "arguments": arguments,
    "record files": records,
}


def write_files(case: Case, folder: Path) -> None:
    """Write the files of a case."""
    for name, data in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    if case.pipe is not None:
        os.mkfifo(folder / case.pipe)
