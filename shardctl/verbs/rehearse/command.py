# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl rehearse`: a run over numbered records, stopped, resumed, and counted."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.base.text import quoted
from shardctl.cli.options import shared
from shardctl.cli.options.dataset import DatasetOptions
from shardctl.cli.options.order import OrderOptions, asked_for
from shardctl.cli.output import AllOption, OutputOptions, ProgressBars, formats_of, warn
from shardctl.verbs.inspect.command import ScriptOptions, names_function, refuse_beside

if TYPE_CHECKING:
    from shardctl.tfds.inspecting.script import ScriptFunction
    from shardctl.tfds.verifying.rehearsed_run import MakeFunction

FORMATS = formats_of("rehearse")
_PLACES = re.compile(r"\{(host|hosts|step)\}")


def rehearse(
    source: DatasetOptions,
    reading: OrderOptions,
    script: ScriptOptions,
    out: OutputOptions,
    specs: shared.Splits = None,
    hosts: shared.Number = 1,
    to_hosts: shared.Number = None,
    kill_at: Annotated[Any, shared.number(minimum=0)] = None,
    save_every: shared.Number = None,
    every_row: AllOption = False,
) -> None:
    """Stop a run and resume it over numbered records, and count what is lost and repeated.

    Before an expensive job begins: TensorFlow runs the pipeline of every host without a model and
    without files. Each record is replaced by its number, in files of the same lengths. The hosts
    run to the end, then once more to --kill-at, and resume as shardctl resume plans. Every example
    is counted. Exits with 1 if any is lost, repeated or moved, or the order is nondeterministic.

    MODULE:FUNCTION returns the tf.data.Dataset of a host. In the words after --, {host} and {hosts}
    stand for the host and their number, {step} for the step of the checkpoint, 0 at first. With
    {step} the function resumes by itself, on --to-hosts hosts, and this is what is rehearsed.

    Arguments:
      specs [SPEC]: A split or slice, or MODULE:FUNCTION with arguments after -- [default: train].

    Options:
      --hosts N: Number of hosts that run [default: 1].
      --to-hosts M: Number of hosts that resume [default: as many].
      --kill-at STEP: All hosts stop at this step, an element of the pipeline [default: random].
      --save-every K: A checkpoint every K steps; the run resumes from the last one before the stop.

    Examples:
      # Is anything lost if 8 hosts stop and 6 resume?
      shardctl rehearse train --hosts 8 --to-hosts 6 --kill-at 100 --shuffle-seed 1 -d mnist
      # Does the script resume by itself without a loss?
      shardctl rehearse train.py:make --hosts 2 -- host={host} hosts={hosts} start={step}
    """
    words = specs or []
    is_function = names_function(script, words, "rehearse")
    if is_function:
        given = {"dataset": source.dataset, **reading.given()}
        refuse_beside(given, quoted(words[0]), "the function has its settings")
    how = {"hosts": hosts, "to_hosts": to_hosts, "kill_at": kill_at, "save_every": save_every}
    from shardctl.tfds.imports import quiet_tensorflow

    with ProgressBars(), quiet_tensorflow(warn):
        from shardctl.tfds.verifying.rehearsed_run import Job, rehearse, rehearse_script

        if is_function:
            made, named = _filled(script, words)
            which = {"only": script.only, "index": script.dataset_index}
            found = rehearse_script(made, Job(**how), named, **which)
        else:
            dataset, settings = asked_for(source, reading)
            found = rehearse(dataset, words[0] if words else None, settings, **how)
    warn(found.warnings)
    FORMATS.write(out, found, every_row=every_row)
    if not found.holds:
        raise typer.Exit(1)


def _filled(script: ScriptOptions, words: list[str]) -> "tuple[MakeFunction, set[str]]":
    """Return what makes a function for values of its places, and the names of these places."""
    texts = [script.call or "", *words]

    def function(values: dict[str, int]) -> "ScriptFunction":
        call, *given = (_PLACES.sub(lambda at: str(values[at[1]]), text) for text in texts)
        return replace(script, call=call or None).function(given[0], given[1:])

    return function, set(_PLACES.findall(" ".join(texts)))
