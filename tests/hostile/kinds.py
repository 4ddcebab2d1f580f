"""Cases of every kind of input: files to write, and the commands that read them."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.children import run_command
from tests.forked_scripts import forking_commands
from tests.hostile.mutations import (
    TEXTS,
    WORDS,
    as_json,
    as_yaml,
    mutated,
    mutated_bytes,
    mutated_lines,
)
from tests.hostile.server import server_of
from tests.record_files import framed


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is tried: files, then commands; with `edited` no command may call the files right.

    commands: arguments of shardctl, or what is done in the folder in between.
    law: returns what is wrong about the outcomes of all commands together.
    """

    commands: Sequence[Sequence[str] | Callable[[Path], object]]
    files: Mapping[str, bytes] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    edited: bool = False
    pipe: str | None = None  # the name of a pipe that nobody writes to
    law: Callable[[Sequence[Any]], str] = lambda _: ""


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The valid files that cases are made of, and record files by their format."""

    files: Mapping[str, bytes]
    records: Mapping[str, bytes]
    server: str = ""  # see `server.py`

    def __getitem__(self, name: str) -> bytes:
        return self.files[name]


# In processes of their own: the threads that these libraries start do not outlive a fork.
_RECORDS = [bytes([index]) * index for index in range(5)]
_WRITERS = {
    "array_record": """
from array_record.python.array_record_module import ArrayRecordWriter
writer = ArrayRecordWriter(sys.argv[1], "group_size:1")
for record in records:
    writer.write(record)
writer.close()
""",
    "parquet": """
import pyarrow, pyarrow.parquet
pyarrow.parquet.write_table(pyarrow.table({"data": records}), sys.argv[1])
""",
}
_RECORDS_FOLDER = Path(__file__).parents[1] / "records" / "recorded"
_RECORDED = {
    "mds": "mds_plain/shard.00000.mds",
    "webdataset": "webdataset/train-000000.tar",
    "arrow": "hugging_face_saved/data-00000-of-00002.arrow",
}
_WRITE_POSITION = """
import shardctl
from shardctl.saved.position_file import PositionRecord, write_position
about = {"settings": shardctl.ReadSettings(shuffle_seed=3, epochs=2), "spec": "train"}
identity = shardctl.read_dataset("l.yaml").identity
write_position("position.json", PositionRecord(dataset=identity, consumed=12, **about))
import numpy as np
from shardctl.saved.scan_file import Scan, write_scan
about = {"key": "k", "fingerprint": shardctl.read_dataset("l.yaml").fingerprint}
of = {"train": np.arange(19), "test": np.arange(10)}
for call, by in (("filter", "passes"), ("take_while", "until"), ("flat_map", "count")):
    values = {name: (numbers % 3 != by.count("u")).astype(int) for name, numbers in of.items()}
    write_scan(Scan(call=call, by=by, values=values, **about), f"{call}.scan")
about |= {"values": {name: numbers % 2 for name, numbers in of.items()}}
write_scan(Scan(call="group_by_window", by="key", windows={0: (2, 2), 1: (3, 3)}, **about),
    "group_by_window.scan")
"""
# What no command line reaches: a program of Python, whose arguments follow.
_READ_POSITION = """
import sys
from shardctl.base.text import inert
from shardctl.errors import ShardctlError
from shardctl.saved.position_file import read_position
try:
    read_position(sys.argv[1])
except ShardctlError as error:
    print(f"error: {inert(str(error))}", file=sys.stderr)
    raise SystemExit(2)
"""


def valid_sources(folder: Path) -> Sources:
    """Return valid files of every kind, all about the dataset of `l.yaml`, as commands write them.

    Of record files there are 5 examples in each, in every format whose library is here.
    """
    (folder / "l.yaml").write_text(json.dumps(WORDS["layout"]))
    for number, order in enumerate(WORDS["orders"]):
        for kind, asked in (("snapshot", "train+test"), ("plan", "train --consumed 8")):
            for ending in ("yaml", "json"):
                words = [*asked.split(), "-d", "l.yaml", *order.split()]
                words += ["-f", ending] * (kind == "snapshot") + ["-o", f"{kind}{number}.{ending}"]
                ran = run_command("resume" if kind == "plan" else kind, *words, folder=folder)
                assert ran.code == 0, ran.errors
    seen = "simulate train -d l.yaml --take 9 -f tfds-ids -o seen.txt"
    assert run_command(*seen.split(), folder=folder).code == 0
    names = [f"toy-train.tfrecord-{index:05}-of-00005\n" for index in (3, 1, 0, 2, 4)]
    (folder / "order.txt").write_text("".join(names))
    forking_commands().run([["-c", _WRITE_POSITION]], folder)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    assert {"position.json", "filter.scan", "group_by_window.scan"} <= files.keys()
    programs = [
        ["-c", f"import sys\nrecords = {_RECORDS!r}\n{write}", name]
        for name, write in _WRITERS.items()
    ]
    forking_commands().run(programs, folder)
    records = {name: (folder / name).read_bytes() for name in _WRITERS if (folder / name).exists()}
    for name, file in _RECORDED.items():
        records[name] = (_RECORDS_FOLDER / file).read_bytes()
    records["tfrecord"] = framed(*_RECORDS)
    bits = np.random.RandomState(9).get_state(legacy=False)["state"]
    words = bits["key"].astype("<u8").tobytes()
    state = (9).to_bytes(8, "little") + bytes([625 - 624, 0, 0, 0, 1, *[0] * 11]) + words
    files["state"] = state + bytes(5056 - len(state))
    for name, packed in (
        ("state.npy", np.frombuffer(files["state"], "u1")),
        ("numbers.npy", np.arange(19.0)),
    ):
        np.save(folder / name, packed)
        files[name] = (folder / name).read_bytes()
    with zipfile.ZipFile(folder / "state.pt", "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("archive/data/0", files["state"])
    files["state.pt"] = (folder / "state.pt").read_bytes()
    for folder_of in ("mds_plain", "hugging_face_saved", "hugging_face_cache"):
        for path in (_RECORDS_FOLDER / folder_of).iterdir():
            files[f"{folder_of}/{path.name}"] = path.read_bytes()
    return Sources(files=files, records=records, server=server_of(files, records))


TABULAR = ("table", "json", "yaml", "csv")


def command_of(kind: str, rng: random.Random, *more: str) -> list[str]:
    """Return a command of those in the table of words, with a format where it has a place."""
    words = rng.choice(WORDS[kind]).split()
    return [rng.choice(TABULAR) if word == "FORM" else word for word in words] + list(more)


def _reading(dataset: str, rng: random.Random) -> list[str]:
    return command_of("reading", rng, "-d", dataset)


def metadata(rng: random.Random, _: Sources) -> Case:
    """dataset_info.json and features.json of a folder."""
    info, features = as_json(WORDS["info"], rng), as_json(WORDS["features"], rng)
    draw = rng.random()
    if draw < 0.7:
        info = as_json(mutated(WORDS["info"], rng), rng)
    elif draw < 0.9:
        info = mutated_bytes(info, rng)
    else:
        features = as_json(mutated(WORDS["features"], rng), rng)
    folder = rng.choice(("toy", "data/toy/plain/1.0.0", "data/toy/::error::/1.0.0"))
    files = {f"{folder}/dataset_info.json": info, f"{folder}/features.json": features}
    listing = ["list", "--data-dir", "data", "-f", rng.choice(TABULAR)]
    commands = [_reading(folder, rng), listing if rng.random() < 0.1 else _reading(folder, rng)]
    return Case(files=files, commands=commands)


def layouts(rng: random.Random, _: Sources) -> Case:
    """Layout files."""
    name = rng.choice(("l.yaml", "l.json"))
    write = as_yaml if name == "l.yaml" else as_json
    if rng.random() < 0.75:
        data = write(mutated(WORDS["layout"], rng), rng)
    else:
        data = mutated_bytes(write(WORDS["layout"], rng), rng)
    return Case(files={name: data}, commands=[_reading(name, rng), _reading(name, rng)])


def settings(rng: random.Random, sources: Sources) -> Case:
    """shardctl.yaml."""
    data = as_yaml(mutated(WORDS["project"], rng), rng)
    if rng.random() < 0.25:
        data = mutated_bytes(as_yaml(WORDS["project"], rng), rng)
    files = {"l.yaml": sources["l.yaml"], "shardctl.yaml": data}
    return Case(files=files, commands=[command_of("with settings", rng)])


def plans(rng: random.Random, sources: Sources) -> Case:
    """Plan files of `resume`."""
    name, files, edited = _sealed("plan", rng, sources)
    form = ["-f", rng.choice(("table", "json"))]
    commands = (
        [["resume", "--plan", name, "-d", "l.yaml", *form], ["diff", name, "other", *form]],
        [["resume", "--plan", name, *form]],  # where it says that its dataset is
    )
    return Case(files=files, commands=rng.choice(commands), edited=edited)


def snapshots(rng: random.Random, sources: Sources) -> Case:
    """Snapshot files."""
    name, files, edited = _sealed("snapshot", rng, sources)
    form = ["-f", rng.choice(("table", "json", "github"))]
    commands = [["diff", name, "-d", "l.yaml", *form], ["diff", name, "other", *form]]
    commands.append(["diff", "--each", name, "other", *form])
    if not edited:
        commands.append(["diff", name, "-d", "l.yaml", "--update"])
    return Case(files=files, commands=commands, edited=edited)


def positions(rng: random.Random, sources: Sources) -> Case:
    """Position files, as `Position.restore` reads them."""
    name, files, edited = _sealed("position", rng, sources)
    return Case(files=files, commands=[["-c", _READ_POSITION, name]], edited=edited)


def _sealed(kind: str, rng: random.Random, sources: Sources) -> tuple[str, dict[str, bytes], bool]:
    """Return (name, files, whether that one says something else than what was sealed)."""
    name = rng.choice([file for file in sources.files if file.startswith(kind)])
    data = sources[name]
    if rng.random() < 0.7:
        write = as_json if name.endswith("json") else as_yaml
        changed = write(mutated(_parsed(data), rng), rng)
    else:
        changed = mutated_bytes(data, rng)
    try:
        edited = content_of(changed) != content_of(data)
    except Exception:
        edited = True
    return name, {name: changed, "l.yaml": sources["l.yaml"], "other": data}, edited


def content_of(data: bytes) -> str:
    """Return what a document says, as text.

    What was proved about a plan is no part of it, nor is where a dataset is looked for. Lengths of
    shards are the same however they are spaced.
    """
    document = _parsed(data)
    if isinstance(document, dict):
        apart = ("proof", "digest", "refs")
        document = {key: value for key, value in document.items() if key not in apart}
    text = json.dumps(document, sort_keys=True, default=str)
    return json.dumps(json.loads(text, object_hook=_with_lengths_apart))


def _with_lengths_apart(mapping: dict[str, Any]) -> dict[str, Any]:
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
    ids = b"".join(b"%d\n" % number for number in range(9))
    change = mutated_lines if rng.random() < 0.6 else mutated_bytes
    chosen = ["-d", "l.yaml", "-f", rng.choice(TABULAR)]
    draw = rng.random()
    files, stdin = {"l.yaml": sources["l.yaml"]}, b""
    if draw < 0.01:
        return Case(files=files, commands=[command_of("of a pipe", rng)], pipe="pipe")
    if draw < 0.5:
        files["log"] = change(sources["seen.txt"], rng)
        words = "resume train --seen log"
    elif draw < 0.75:
        files["order"] = change(sources["order.txt"], rng)
        words = "simulate train --file-order order"
    else:
        seen = sources["seen.txt"]
        option, lines = rng.choice((("--id", ids), ("--tfds-id", seen), ("--position", ids)))
        words, stdin = f"locate train {option} -", change(lines, rng)
    return Case(files=files, commands=[[*words.split(), *chosen]], stdin=stdin)


def arguments(rng: random.Random, sources: Sources) -> Case:
    """Random command lines, and variables of the environment."""
    names = ("SHARDCTL_DATASET", "TFDS_DATA_DIR", "NO_COLOR", "TERM", "COLUMNS", "HOME")
    return Case(
        files={name: sources[name] for name in ("l.yaml", "plan0.yaml", "snapshot0.yaml")},
        commands=[command_line(rng)],
        env={rng.choice(names): _text(rng, TEXTS)} if rng.random() < 0.2 else {},
        stdin=rng.choice((b"", b"1\n2\n", b"\xff\x00")),
    )


@cache
def _commands() -> dict[str, tuple[list[Any], list[Any]]]:
    """Return the options and the arguments of each command but those that load TensorFlow."""
    from shardctl.cli.app import application
    from shardctl.cli.main import COMMANDS

    group = application(*(name for name in COMMANDS if name not in ("verify", "rehearse")))
    context = group.make_context("shardctl", [], resilient_parsing=True)
    found = {}
    for name, command in group.commands.items():
        parameters = command.get_params(context)
        options = [one for one in parameters if one.param_type_name == "option"]
        found[name] = options, [one for one in parameters if one not in options]
    return found


def command_line(rng: random.Random) -> list[str]:
    """Return the words after `shardctl`: often nearly right, at times anything."""
    name, (options, arguments) = rng.choice(list(_commands().items()))
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
        values = WORDS["values"].get(long, "numbers")  # or the name of a list of them
        words.append(long)
        if not option.is_flag:
            value = _text(rng, WORDS[values] if isinstance(values, str) else values)
            words[-1:] = [f"{long}={value}"] if rng.random() < 0.3 else [long, value]
    if rng.random() < 0.1:
        words.insert(rng.randint(0, len(words)), _text(rng, TEXTS))
    return [_text(rng, TEXTS) if rng.random() < 0.03 else name, *words]


def _text(rng: random.Random, plausible: Sequence[str]) -> str:
    """Return a word that a program can be given: no NUL, no surrogate but those of bytes."""
    text = rng.choice(plausible if rng.random() < 0.8 else TEXTS)
    return text.replace("\0", "").replace("\ud800", "\udc80")


def records(rng: random.Random, sources: Sources) -> Case:
    """Record files whose contents are checked; TFRecord has a checksum over every byte."""
    form = rng.choice(("tfrecord", *(name for name in _WRITERS if name in sources.records)))
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
        commands=[[*command, "-d", "toy", "-f", rng.choice(TABULAR)]],
        edited=command[0] == "verify" and form == "tfrecord" and damaged != data,
    )


Make = Callable[[random.Random, Sources], Case]
OF_ONE_FILE: Mapping[str, Make] = {
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
