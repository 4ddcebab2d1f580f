"""Pieces of Python source: literals, calls in lines of a bounded width, comments.

Names in it may come from anywhere. A value is always written as its literal, so that no text
becomes code. A comment has no line ends, and nothing in it is a command to a CI runner.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple

from shardctl.base.text import inert, printable
from shardctl.draw.step_rows import pipeline_line
from shardctl.order.order import Order
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.stages.stages import Pipeline
from shardctl.stages.text import text_of

WIDTH = 88  # what formatters of Python code default to


def literal(value: str | int | bool | None) -> str:
    r"""Return a value as a literal, text in double quotes where that needs no more escapes.

    >>> print(literal("it's"), literal('a"b'), literal("x\n\u202e"), literal(7))
    "it's" 'a"b' "x\n\u202e" 7
    """
    text = inert(repr(value))  # what that escapes is in a literal the same character
    # repr chose single quotes and there is no double quote inside, so either kind is right.
    if isinstance(value, str) and text.startswith("'") and '"' not in text:
        return f'"{text[1:-1]}"'
    return text


def call(head: str, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a call: one where it fits, else one for each argument.

    >>> list(call("ds = ds.repeat", ["3"]))
    ['ds = ds.repeat(3)']
    """
    line = f"{head}({', '.join(arguments)})"
    if len(line) <= WIDTH or not arguments:
        yield line
        return
    yield f"{head}("
    yield from (f"    {argument}," for argument in arguments)
    yield ")"


def keywords(values: Mapping[str, str]) -> list[str]:
    """Return arguments by name, of what they are as source."""
    return [f"{name}={value}" for name, value in values.items()]


def order_comment(spec: str, order: Order) -> Iterator[str]:
    """Yield comments that name the pipeline, and what its order depends on unstated."""
    yield from comment(pipeline_line(spec, order))
    for text in order.assumptions:
        yield from comment(f"assumed: {text}")


def comment(text: str) -> Iterator[str]:
    """Yield a text as comments, whatever is in it."""
    yield from textwrap.wrap(
        inert(printable(text, 2000)),
        WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def module(*parts: Iterable[str]) -> Iterator[str]:
    """Yield the text of parts that have lines, with an empty line between two of them.

    Around a part that begins with a definition there are two, and behind one that holds any.
    """
    first, before = True, False
    for part in parts:
        lines = list(part)
        if not lines:
            continue
        # Two empty lines around definitions, as formatters of Python write them.
        defines = [line.startswith(("def ", "class ")) for line in lines]
        if not first:
            yield "\n\n" if defines[0] or before else "\n"
        first, before = False, any(defines)
        yield "".join(f"{line}\n" for line in lines)


# What each host mode is in code: the calls of `tfds/training/pipeline.py`, written down.


class HostCode(NamedTuple):
    """The code of one host mode for `host` of `num_hosts`, "" where it leaves that step alone.

    split: what `as_dataset` is asked for, where {} is the spec.
    input_context: `ReadConfig.input_context`.
    examples: what stands behind the examples of the reader.
    """

    split: str = "{}"
    input_context: str = ""
    examples: str = ""


HOST_CODE = {
    "even": HostCode(split="tfds.even_splits({}, n=num_hosts)[host]"),
    "files": HostCode(input_context="tf.distribute.InputContext(num_hosts, host)"),
    "examples": HostCode(examples=".shard(num_shards=num_hosts, index=host)"),
}


def code_of_host(settings: ReadSettings) -> HostCode:
    """Return the code of the settings' host mode, which changes nothing without a host.

    >>> code_of_host(ReadSettings(host_by="files")).input_context
    ''
    """
    return HostCode() if settings.host is None else HOST_CODE[settings.host_by]


# Settings as the `shardctl.ReadSettings` that has them.


def settings_code(settings: ReadSettings) -> Iterator[str]:
    """Yield what makes `settings`, without what is its default.

    >>> list(settings_code(ReadSettings(shuffle_seed=42, batch=256)))
    ['settings = shardctl.ReadSettings(shuffle_seed=42, batch=256)']
    """
    default = ReadSettings()
    said = {
        field.name: source_of(getattr(settings, field.name))
        for field in fields(settings)
        if getattr(settings, field.name) != getattr(default, field.name)
    }
    yield from call("settings = shardctl.ReadSettings", keywords(said))


def source_of(value: object) -> str:
    """Return a setting as source.

    >>> print(source_of(Host(index=1, count=8)), source_of(("a", "b")))
    shardctl.Host(index=1, count=8) ("a", "b",)
    """
    if isinstance(value, Host):
        return f"shardctl.Host(index={value.index}, count={value.count})"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))},)"
    if isinstance(value, Pipeline):
        return literal(text_of(value))
    assert value is None or isinstance(value, (bool, int, str))
    return literal(value)
