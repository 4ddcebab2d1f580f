# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl rehearse`: a run over stand-in records, stopped, resumed, and counted."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.base.phrase import option_name
from shardctl.base.text import quoted
from shardctl.cli.options import shared
from shardctl.cli.options.dataset import DatasetOptions
from shardctl.cli.options.order import OrderOptions, asked_for
from shardctl.cli.output import AllOption, OutputOptions, ProgressBars, formats_of, warn
from shardctl.errors import UsageError
from shardctl.verbs.inspect.command import ScriptOptions, name_a_function

if TYPE_CHECKING:
    from shardctl.tfds.inspecting.script import ScriptFunction
    from shardctl.verbs.rehearse.answer import Rehearsal

FORMATS = formats_of("rehearse")
_FUNCTION = re.compile(r"[^\[\]]+:[A-Za-z_]\w*")  # a spec has colons in brackets alone
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
    seed: Annotated[Any, shared.number(minimum=0)] = None,
    every_row: AllOption = False,
) -> None:
    """Stop a run and resume it over stand-in records, and count what is lost and repeated.

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
      --seed N: Draw the random step with this seed.

    Examples:
      # Is anything lost if 8 hosts stop and 6 resume?
      shardctl rehearse train --hosts 8 --to-hosts 6 --kill-at 100 --shuffle-seed 1 -d mnist
      # Does the script resume by itself without a loss?
      shardctl rehearse train.py:make --hosts 2 -- host={host} hosts={hosts} start={step}
    """
    words = specs or []
    how = {"hosts": hosts, "to_hosts": to_hosts, "kill_at": kill_at}
    how |= {"save_every": save_every, "seed": seed}
    if seed is not None and kill_at is not None:
        raise UsageError("--seed draws the step that --kill-at gives; choose one")
    if words and script.call is None:
        name_a_function(words[0], "rehearse")
    is_function = bool(words) and (script.call is not None or _FUNCTION.fullmatch(words[0]))
    refused = {"dataset": source.dataset, **reading.given()} if is_function else script.given()
    for name, value in refused.items():
        if value not in (None, []):
            why = "the function has its settings" if is_function else "that is no function"
            of = quoted(words[0] if words else "train")
            raise UsageError(f"{option_name(name)} with {of}: {why}")
    if len(words) > 1 and not is_function:
        extra = quoted(" ".join(words[1:]))
        raise UsageError(f"{extra} is more than rehearse takes; shardctl rehearse -h explains")
    from shardctl.tfds.imports import quiet_tensorflow

    with ProgressBars(), quiet_tensorflow(warn):
        if is_function:
            found = _of_script(script, words, how)
        else:
            dataset, settings = asked_for(source, reading)
            from shardctl.tfds.verifying.rehearse import rehearse as run

            found = run(dataset, words[0] if words else None, settings, **how)
    warn(found.warnings)
    FORMATS.write(out, found, every_row=every_row)
    if not found.holds:
        raise typer.Exit(1)


def _of_script(script: ScriptOptions, words: list[str], how: dict[str, Any]) -> "Rehearsal":
    from shardctl.tfds.verifying.rehearse import rehearse_script

    texts = [*words[1:], script.call or ""]
    named = {name for text in texts for name in _PLACES.findall(text)}

    def function(values: dict[str, int]) -> "ScriptFunction":
        def filled(text: str) -> str:
            return _PLACES.sub(lambda found: str(values[found[1]]), text)

        call = None if script.call is None else filled(script.call)
        return replace(script, call=call).function(words[0], [*map(filled, words[1:])])

    return rehearse_script(
        function,
        told="host" in named,
        resumes="step" in named,
        only=script.only,
        index=script.dataset_index,
        **how,
    )
