# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl inspect`: the stages of a real tf.data pipeline, and what fixes its order."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.base.phrase import option_name
from shardctl.base.text import quoted
from shardctl.cli.options.shared import Flag, Text, Word, argument
from shardctl.cli.output import (
    Formats,
    OutputOptions,
    as_csv,
    as_json,
    as_table,
    as_text,
    say,
    warn,
    write,
)
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.tfds.inspecting.script import ScriptFunction
    from shardctl.verbs.inspect.answer import Inspection

FORMATS = Formats(
    renderers={
        "table": as_table("verbs.inspect.view:inspect_table"),
        "json": as_json("verbs.inspect.view:inspect_document"),
        "yaml": as_text("verbs.inspect.view:project_yaml"),
        "csv": as_csv("verbs.inspect.view:inspect_rows"),
        "patch": as_text("verbs.inspect.view:inspect_patch"),
    }
)


@dataclass(frozen=True, kw_only=True)
class ScriptOptions:
    """How the function of a script is called, and which of its datasets is meant.

    Options:
      --call EXPRESSION: Evaluate this in the script, as 'make(batch=8)'; FUNCTION is not needed.
      --config FILE: Pass config=get_config() of this ml_collections file; set its fields by --
        config.NAME=VALUE.
      --only NAME: Only this one of several datasets.
      --dataset-index N|LINE: Only the dataset of this number, from 0, or line, as train.py:31.
    """

    call: Text = None
    config: Text = None
    only: Text = None
    dataset_index: Text = None

    def given(self) -> dict[str, Any]:
        """Return what is given here, by its name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def function(self, reference: str, words: Sequence[str]) -> "ScriptFunction":
        """Return the function that a text names, to be called with words of the command line."""
        from shardctl.tfds.inspecting.script import ScriptFunction

        return ScriptFunction.parsed(reference, words, expression=self.call, config=self.config)


def inspect(
    script: ScriptOptions,
    out: OutputOptions,
    function: Annotated[str, argument()],
    arguments: Annotated[list[str] | None, argument()] = None,
    loop: Word = "python",
    scan: Flag = False,
    patch: Flag = False,
    assume_seeds: Flag = False,
) -> None:
    """Show a real tf.data pipeline stage by stage, and what makes its order nondeterministic.

    Objects of Grain, PyTorch, Hugging Face and other loaders are read back too, without TensorFlow.
    Calls the function and looks at the dataset that it returns: its readers with files and seeds,
    its shuffles, caches and mixtures. No example is read without --scan. The function may return
    several datasets, in a dict, a list or beside other values; or a generator or an iterator of
    a dataset.
    A script without :FUNCTION is not run: its functions are listed. -f yaml writes a shardctl.yaml,
    with which the other commands predict the same order without TensorFlow.

    Where the order is nondeterministic, the smallest change that fixes it is named: a seed, or
    deterministic=True. --patch writes it as a diff. --assume-seeds answers as if it were made.

    Exits with 1 if the order is nondeterministic.

    Arguments:
      function MODULE:FUNCTION: A function that returns a tf.data.Dataset, as train.py:make_dataset.
      arguments [-- ARGUMENT...]: Its arguments: texts, numbers, name=value.

    Options:
      --loop python|keras-fit: The training loop: python, or keras-fit, which makes two iterators an
        epoch.
      --scan: Read the examples once, where stages depend on the data; keep what was found in files
        beside shardctl.yaml. Interrupted, it continues when run again.
      --patch: Write the changes that make the order deterministic as a diff, for patch -p0.
      --assume-seeds: Answer about the pipeline with these changes; the answer lists them.

    Examples:
      # Show the stages between the files and the training
      shardctl inspect train.py:make_dataset
      # Write a shardctl.yaml, so that all commands here use this pipeline
      shardctl inspect train.py:make_dataset -o shardctl.yaml -- train seed=7
      # Make its order deterministic
      shardctl inspect train.py:make_dataset --patch | patch -p0
      # Call it with a config of ml_collections, and change a value
      shardctl inspect train.py:make_dataset --config configs/default.py -- config.batch_size=8
    """
    from shardctl.tfds.imports import quiet_tensorflow

    if patch:
        if out.format not in ("table", "patch"):
            raise UsageError(f"--patch and --format {out.format}: choose one")
        out = replace(out, format="patch")
    if script.call is None:
        name_a_function(function, "inspect")
    with quiet_tensorflow(warn):
        from shardctl.tfds.inspecting.script import inspect_script

        called = script.function(function, arguments or ())
        found = inspect_script(
            called,
            loop=loop,
            only=script.only,
            index=script.dataset_index,
            scans=_scans(out, runs=scan),
            assume_seeds=assume_seeds,
        )
        chunks = list(FORMATS.render(out, found, str(called)))
    if FORMATS.chosen(out) == "yaml":
        _write_layouts(out, found[0])
    write(chunks, out.output)
    if not all(one.predictable for one in found):
        raise typer.Exit(1)


def _scans(out: OutputOptions, *, runs: bool) -> Any:
    """Return the scans beside the shardctl.yaml: the one that is written, or the nearest."""
    from pathlib import Path

    from shardctl.base.by_name import provided

    is_file = FORMATS.chosen(out) == "yaml" and out.output not in (None, "-")
    beside = {"folder": Path(os.path.dirname(out.output or ""))} if is_file else {}
    return provided("scans")(runs=runs, **beside)


def names_function(script: ScriptOptions, words: Sequence[str], command: str) -> bool:
    """Return whether words name a function of a script and its arguments, else one spec or none.

    Raises:
        UsageError: a script alone; of a spec, options of a function or more words.
    """
    if words and script.call is None:
        name_a_function(words[0], command)
    # A spec has colons in brackets alone.
    if words and (script.call is not None or re.fullmatch(r"[^\[\]]+:[A-Za-z_]\w*", words[0])):
        return True
    spec = quoted(words[0] if words else "train")
    refuse_beside(script.given(), spec, "it is no function of a script")
    if len(words) > 1:
        extra = quoted(" ".join(words[1:]))
        raise UsageError(f"{extra} is more than {command} takes; shardctl {command} -h explains")
    return False


def refuse_beside(given: dict[str, Any], beside: str, because: str) -> None:
    """Refuse the first option that was given beside something that it does not go with."""
    for name, value in given.items():
        if value not in (None, []):
            raise UsageError(f"{option_name(name)} with {beside}: {because}")


def name_a_function(reference: str, command: str) -> None:
    """Refuse a script that is named without a function, and say which functions it has.

    Raises:
        UsageError: the text names a script alone.
    """
    from shardctl.verbs.inspect.functions import functions_to_name, is_script

    if is_script(reference):
        lines, error = functions_to_name(reference, command)
        for line in lines:
            say(line)
        raise error


def _write_layouts(out: OutputOptions, found: "Inspection") -> None:
    """Write the layout files of record files without metadata beside the shardctl.yaml."""
    from shardctl.verbs.inspect.view import is_without_metadata, layout_name

    dataset = found.dataset
    named = found.datasets or ({} if dataset is None else {layout_name(dataset): dataset})
    layouts = {name: one for name, one in named.items() if is_without_metadata(one)}
    if layouts and out.output in (None, "-"):
        raise UsageError(
            "record files without metadata need a layout file beside the shardctl.yaml: "
            "give --output FILE"
        )
    for name, one in layouts.items():
        from shardctl.files.documents import to_yaml
        from shardctl.verbs.layout.answer import layout
        from shardctl.verbs.layout.view import layout_document

        path = os.path.join(os.path.dirname(out.output or ""), name)
        write(to_yaml(layout_document(layout(one))), path)
        say(f"wrote {path}: the files that it reads, and how many records they have")
