"""Cases of several commands, with laws about what they answer together; and all kinds by name."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from tests.hostile.kinds import OF_ONE_FILE, TABULAR, Case, Make, Sources, command_of
from tests.hostile.mutations import TEXTS, WORDS, as_json, mutated, mutated_bytes, mutated_lines
from tests.hostile.server import SECRET, UNSEEN, way_of
from tests.record_files import framed

_DUE = [range(4 * step, min(4 * step + 4, 19)) for step in range(5)]  # of batches of 4
_ENDINGS = {"webdataset": "tar"}
_OLD = 1_700_000_000  # a time of change, in seconds


def plain(text: str, rng: random.Random) -> str:
    """Return a text, cut, as a name of a file or in a variable can have it."""
    text = text[: rng.choice((1, 9, 99))].replace("\0", "").replace("/", "-")
    return text.encode("utf-8", "replace").decode()


def _made_old(folder: Path) -> None:
    for file in (folder / "data").rglob("*"):
        os.utime(file, (_OLD, _OLD))


def _edited(pattern: str, change: Callable[[bytes], bytes], folder: Path) -> None:
    """Change files of a folder, each in its own way."""
    for file in sorted(folder.glob(pattern)):
        if file.is_file():
            file.write_bytes(change(file.read_bytes()))


def _resealed(rng: random.Random, data: bytes) -> bytes:
    """Return a file of counts with others in it, and a checksum that is right."""
    rows = mutated(json.loads(data.partition(b"\n")[2]), rng)
    body = json.dumps(rows).encode()
    return b"%08x\n%b" % (zlib.crc32(body), body)


def index(rng: random.Random, sources: Sources) -> Case:
    """Record files of any format and name without metadata, which are damaged."""
    form = rng.choice(list(sources.records))
    names = [f"toy-train-{index:05}-of-00003.{_ENDINGS.get(form, form)}" for index in range(3)]
    data = mutated_bytes(sources.records[form], rng)
    if rng.random() < 0.3:
        at = rng.randint(0, len(names[0]))
        names[0] = names[0][:at] + plain(rng.choice(TEXTS), rng) + names[0][at:]
    files = dict.fromkeys((f"data/{name}" for name in names), sources.records[form])
    files[f"data/{names[1]}"] = data
    if rng.random() < 0.2:
        shards = [{"raw_data": {"basename": names[1], "bytes": 9}, "samples": 5}]
        files["data/index.json"] = as_json(mutated({"version": 2, "shards": shards}, rng), rng)
    commands = [command_of("of index", rng) for _ in range(2)]
    return Case(files=files, commands=[_made_old, *commands])


def caches(rng: random.Random, sources: Sources) -> Case:
    """Counts that `index` keeps, damaged: the answer is that without them."""
    names = [f"data/toy-train.tfrecord-{index:05}-of-00003" for index in range(3)]
    files = {name: framed(*[b"x"] * rng.randint(0, 5)) for name in names}
    count = ["index", "data", "-f", "csv", "--jobs", "1"]
    is_sealed = rng.random() < 0.4
    others: tuple[Any, ...] = (lambda _: b"", lambda _: b"00000000\n{}", lambda one: one + one)
    change: Any = rng.choice((partial(mutated_bytes, rng=rng), *others[: rng.randint(0, 3)]))
    edit = partial(_edited, "cache/counts/*", partial(_resealed, rng) if is_sealed else change)
    commands: list[Any] = [_made_old, count, edit, count, [*count, "--no-cache"]]
    law = Case.law if is_sealed else _one_answer  # what is sealed is believed
    return Case(files=files, commands=commands, env={"SHARDCTL_CACHE_DIR": "cache"}, law=law)


def _one_answer(found: Sequence[Any]) -> str:
    answers = {(one.exit_code, one.stdout) for one in found}
    return "" if len(answers) == 1 else "another count than without the cache"


def chains(rng: random.Random, sources: Sources) -> Case:
    """What a command wrote is right, and after an edit of the dataset it is not."""
    order = [*rng.choice(WORDS["orders"]).split(), "--global-seed", str(rng.randrange(9))]
    for words in rng.sample(WORDS["more of orders"], rng.randint(0, 2)):
        order += shlex.split(words)
    spec, form = rng.choice(("train", "train+test", "train[1:]")), rng.choice(("yaml", "json"))
    source, file = ["-d", "l.yaml"], f"out.{form}"
    if rng.random() < 0.5:
        write = ["snapshot", spec, *source, *order, "-f", form, "-o", file]
        read = ["diff", file, *source]
    else:
        consumed = ["--consumed", str(rng.choice((0, 1, 5, 11)))]
        write = ["resume", spec, *source, *order, *consumed, "-o", file]
        read = ["resume", "--plan", file, *source]
    edit = partial(_edited, "l.yaml", partial(_other_length, rng))
    return Case(files={"l.yaml": sources["l.yaml"]}, commands=[write, read, edit, read], law=_kept)


def _other_length(rng: random.Random, data: bytes) -> bytes:
    layout = json.loads(data)
    lengths = layout["splits"]["train"]["shard_lengths"]
    at = rng.randrange(len(lengths))
    lengths[at] = rng.choice((lengths[at] + 1, lengths[at] + 10**4, abs(lengths[at] - 1)))
    return json.dumps(layout).encode()


def _kept(found: Sequence[Any]) -> str:
    written, read, edited = found
    if written.exit_code == 0 and read.exit_code != 0:
        return f"what was written is refused: {read.stderr[-150:]!r}"
    # The same ids may be read in the same order, of which `diff` names the change all the same.
    passes = written.exit_code == 0 == edited.exit_code and b"changed length" not in edited.stdout
    return "another dataset passes" if passes else ""


def scans(rng: random.Random, sources: Sources) -> Case:
    """Files of `inspect --scan`, which stages name."""
    name = rng.choice([file for file in sources.files if file.endswith(".scan")])
    change = mutated_bytes if rng.random() < 0.4 else _other_scan
    files = {"l.yaml": sources["l.yaml"], "x.scan": change(sources[name], rng)}
    stages = f"{name.removesuffix('.scan')}(kept='x.scan')"
    if rng.random() < 0.05:
        stages = f"filter(kept={plain(rng.choice(TEXTS), rng)!r})"
    stages = rng.choice(("", "shuffle(5, seed=1) | ")) + stages + rng.choice(("", " | batch(3)"))
    command = command_of("of stages", rng, "-d", "l.yaml", "--stages", stages)
    return Case(files=files, commands=[command])


def loaders(rng: random.Random, sources: Sources) -> Case:
    """Files of other loaders: their metadata, states of generators, lists of numbers."""
    if rng.random() < 0.5:
        folder = rng.choice(("mds_plain", "hugging_face_saved", "hugging_face_cache"))
        own = {name: data for name, data in sources.files.items() if name.startswith(folder)}
        name = rng.choice([name for name in own if name.endswith(".json")])
        data = as_json(mutated(json.loads(own[name]), rng), rng)
        own[name] = data if rng.random() < 0.7 else mutated_bytes(own[name], rng)
        return Case(files=own, commands=[command_of("of folders", rng, "-d", folder)])
    name = rng.choice(("state", "state.npy", "state.pt", "numbers.npy"))
    files = {"x": mutated_bytes(sources[name], rng), "l.yaml": sources["l.yaml"]}
    stages = rng.choice(WORDS["of files" if name == "numbers.npy" else "of states"])
    command = command_of("of chains", rng, "-d", "l.yaml", "--loader", "torch", "--stages", stages)
    return Case(files=files, commands=[command])


def _other_scan(data: bytes, rng: random.Random) -> bytes:
    """Return a scan with another head, or other values, as a whole file."""
    import numpy as np

    with np.load(BytesIO(data)) as found:
        arrays: dict[str, Any] = {key: found[key] for key in found.files}
    draw, sink = rng.random(), BytesIO()
    if draw < 0.6:
        arrays["head"] = np.array(json.dumps(mutated(json.loads(str(arrays["head"])), rng)))
    else:
        name = rng.choice([key for key in arrays if key != "head"])
        other = (
            arrays[name].astype(rng.choice(("f8", "U3", "?", "i1", "M8[s]", "c16"))),
            arrays[name][: rng.randint(0, 9)],
            np.append(arrays[name], rng.choice((-1, 2**62, -(2**63)))),
            arrays[name] * rng.choice((-1, 0, 2**40, 2**62)),
            arrays[name][:, None],
            np.array(3),
        )
        arrays[name] = rng.choice(other)
    np.savez_compressed(sink, **arrays)
    return sink.getvalue()


def step_logs(rng: random.Random, sources: Sources) -> Case:
    """Logs of a training loop, which `audit` reads."""
    lines = [b" ".join(b"%d" % n for n in (step, *_DUE[step])) for step in range(5)]
    if rng.random() < 0.3:
        lines = [b"# file 0 toy-train.tfrecord-00000-of-00005", *lines]
        lines = [re.sub(rb" (?=[0-4]\b)", rb" 0__", line, count=4) for line in lines]
    if rng.random() < 0.4:  # steps as they may have been logged: again, not at all, cut off
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(lines))
            again = rng.choice((lines[: at + 1], lines[at : at + 2], [b"# host 0/1"], []))
            lines[at : at + rng.choice((0, 0, 1))] = again
        text = b"\n".join(lines) + rng.choice((b"\n", b"\n", b""))
    else:
        change = mutated_lines if rng.random() < 0.6 else mutated_bytes
        text = change(b"\n".join(lines) + b"\n", rng)
    name = rng.choice(("steps.log", "-", "steps.log", "0-of-2.log", "logs"))
    files = {"l.yaml": sources["l.yaml"], name + "/1-of-2.log" * (name == "logs"): text}
    command = command_of("of logs", rng, name, "-d", "l.yaml", "--cycle", "1", "--batch", "4")
    whole = name in ("steps.log", "-") and "--host" not in command
    law = partial(_trained_in_turn, text) if whole else Case.law
    stdin = files.pop("-", b"")
    return Case(files=files, commands=[command], stdin=stdin, law=law)


def _trained_in_turn(text: bytes, found: Sequence[Any]) -> str:
    """Return what is wrong with a log that passes: its last lines of each step are the order."""
    kept: list[tuple[int, list[int]]] = []
    if found[0].exit_code != 0:
        return ""
    for line in text.split(b"\n")[:-1]:  # what no line end follows was cut off
        if line.strip() and not re.fullmatch(rb"[ \t\r\d]+", line):
            return ""
        step, *ids = map(int, line.split() or (-1,))
        kept = [one for one in kept if one[0] < step or step < 0] + [(step, ids)] * (step >= 0)
    first = 1 if kept and kept[0][0] == 1 else 0
    steps = [(step - first, ids) for step, ids in kept]
    due = [(step, [*_DUE[step]]) for step in range(min(len(kept), 5))]
    if not any(ids for _, ids in kept):
        due = [(step, []) for step, _ in due]
    return "" if steps == due else f"steps {steps} pass"[:200]


_REMOTE = {f"SHARDCTL_REMOTE_{name}": "0.2" for name in ("TIMEOUT", "PATIENCE")}
_NO_PROXY = dict.fromkeys(("NO_PROXY", "no_proxy"), "*")


def servers(rng: random.Random, sources: Sources) -> Case:
    """Files of a web server that answers wrongly."""
    number, login = rng.randint(1, 999), rng.choice(("", f"me:{SECRET}@"))
    name = rng.choice(("l.yaml", "toy-train.tfrecord-00000-of-00001"))
    query = rng.choice(("", "", f"?token={SECRET}"))
    right, wrong = (
        f"http://{login}{sources.server}/{which}/{name}{query}" for which in (0, number)
    )
    read = ["simulate", "train", "--take", "20", "-f", "ids", "-d"]
    commands = [[*read, right], [*read, wrong]]
    if rng.random() < 0.3:
        form = ["-f", rng.choice(TABULAR)]
        words = rng.choice(WORDS["of a server"]).split()
        place = f"http://{login}{sources.server}/{rng.choice((0, number))}"
        commands = [[word.replace("URL", place) for word in words] + form]
    law = partial(_served, way_of(number))
    return Case(
        files={"l.yaml": sources["l.yaml"]},
        commands=commands,
        env={**_REMOTE, **_NO_PROXY},
        law=law,
    )


def _served(way: str, found: Sequence[Any]) -> str:
    if any(SECRET.encode() in one.stdout + one.stderr for one in found):
        return f"a password is shown, {way}"
    right, *wrong = found
    if not wrong or way in UNSEEN:
        return ""
    if right.exit_code != 0:
        return f"a right answer is refused: {right.stderr[-150:]!r}"
    other = wrong[0].exit_code == 0 and wrong[0].stdout != right.stdout
    return f"another answer where the server is wrong, {way}" if other else ""


def completion(rng: random.Random, sources: Sources) -> Case:
    """Lines that a shell asks to complete."""
    words = rng.choice(WORDS["lines"])
    line = f"shardctl {words}"
    draw, in_place = rng.random(), rng.random() < 0.5
    if draw < 0.4:
        line = line[: rng.randint(0, len(line))]
    if draw > 0.2:
        at = rng.randint(0, len(line))
        # What is completed in its place is repeated as it was typed, and so are commands of CI.
        odd = WORDS["specs"] if in_place else [text for text in TEXTS if "##" not in text]
        line = line[:at] + rng.choice((*odd, "'", '"', "\\", " ", "-", "[")) + line[at:]
    line = line.replace("\0", "").encode("utf-8", "replace").decode()
    shell = rng.choice(("bash", "zsh", "fish"))
    env = {"_SHARDCTL_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}
    if in_place:
        env["_SHARDCTL_COMPLETE_TEXT"] = line[rng.randint(0, len(line)) :]
    names = ("l.yaml", "plan0.yaml", "shardctl.yaml")
    files = {name: sources.files.get(name, b"dataset: l.yaml\n") for name in names}
    files[f"x{plain(rng.choice(TEXTS), rng)}"] = b""
    if rng.random() < 0.3:
        files["shardctl.yaml"] = mutated_bytes(b"dataset: l.yaml\nread: {cycle: 2}\n", rng)
    return Case(files=files, commands=[["completion"]], env=env, law=_silent)


def _silent(found: Sequence[Any]) -> str:
    return (
        f"completion says {found[0].stderr[:99]!r}" if found[0].stderr or found[0].exit_code else ""
    )


def rehearsals(rng: random.Random, sources: Sources) -> Case:
    """What TensorFlow reads: `rehearse`, and plans and snapshots beside it."""
    order = rng.choice(WORDS["orders"]).split()
    files = {"l.yaml": sources["l.yaml"]}
    draw, source = rng.random(), ["-d", "l.yaml"]
    if draw < 0.6:
        words = ["rehearse", rng.choice(("train", "train[:9]", *WORDS["specs"])), *source]
        for option, values in WORDS["of rehearse"].items():
            if rng.random() < 0.5:
                words += [option, rng.choice(values)]
        words += order * (rng.random() < 0.5)
        return Case(files=files, commands=[[*words, "-f", rng.choice(TABULAR)]])
    kind = rng.choice(("snapshot", "plan"))
    name = rng.choice([file for file in sources.files if file.startswith(kind)])
    files[name] = mutated_bytes(sources[name], rng) if draw < 0.8 else sources[name]
    words = ["verify", name] if kind == "snapshot" else ["verify", "--plan", name]
    same = files[name] == sources[name]
    law = partial(_all_zero) if same else Case.law
    return Case(files=files, commands=[[*words, *source]], law=law)


def _all_zero(found: Sequence[Any]) -> str:
    wrong = next((one for one in found if one.exit_code), None)
    return f"exit code {wrong.exit_code}: {wrong.stderr[-150:]!r}" if wrong else ""


KINDS: Mapping[str, Make] = {
    **OF_ONE_FILE,
    "index": index,
    "loaders": loaders,
    "caches": caches,
    "chains": chains,
    "scans": scans,
    "step logs": step_logs,
    "servers": servers,
    "completion": completion,
    "rehearsals": rehearsals,
}
# Of kinds that wait for a server, or for TensorFlow: one case where others have so many.
SHARES = {"servers": 10, "rehearsals": 100}
