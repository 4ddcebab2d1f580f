"""Random command lines over all commands and all of their options."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from tests.hostile.mutations import SPECS, TEXTS

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
