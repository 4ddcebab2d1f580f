# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl quality`: how close an order is to a uniform permutation."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset, project_here
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import Flag, SpecArgument, Text, number, option, real_number
from shardctl.cli.output import Formats, OutputOptions, PictureOption, say, verb_formats, warn
from shardctl.errors import UsageError

FORMATS = Formats(renderers=verb_formats("verbs.quality.view", "quality", pictures=True))
_OF_LOADERS = Formats(renderers=verb_formats("verbs.quality.view", "loaders", pictures=True))


def _known_minimums(incomplete: str) -> list[str]:
    from shardctl.verbs.quality.answer import MINIMUM_WORDS

    return [word for word in MINIMUM_WORDS if word.startswith(incomplete)]


def _memory(text: Any) -> str:
    if str(text).isdigit() and int(text) < 1 << 20:
        raise UsageError("a unit is needed, as 8GiB")
    return str(text)


def quality(
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    spec: SpecArgument = None,
    target: Annotated[
        Any,
        option(
            parse=real_number(
                lambda score: 0 < score <= 1, "a score up to 1 is needed, as 0.8 (good)"
            )
        ),
    ] = None,
    min_score: Annotated[str | None, option(offered=_known_minimums)] = None,
    memory: Annotated[Any, option(parse=_memory)] = None,
    example_bytes: Text = None,
    num_hosts: Annotated[Any, number("--hosts")] = None,
    loaders: Flag = False,
    picture: PictureOption = None,
) -> None:
    """Say how well an order is shuffled: 0 is the order of storage, 1 a uniform permutation.

    The verdict says it in words: no shuffle, weak, fair (a score of 0.5 or more), good (0.8), as
    good as uniform; or that it cannot be told, of very few examples.

    Each metric is beside what a uniform permutation shows, with its spread; then come the parts
    of the epoch, the next epoch, and what other settings would do. Without --batch, batches of 256
    are meant. Seeds that are not given get stand-ins.

    A terminal also shows where in storage the examples of the epoch lie (a diagonal is the order
    of storage, an even shade a uniform permutation) and the score over the epoch; -o quality.svg
    draws these and what other settings would score.

    Options:
      --target SCORE: Find the smallest shuffle buffer that reaches this score, and its memory.
      --min-score SCORE: Exit with 1 if the score is lower: a number, or weak, fair, good or
        uniform.
      --memory SIZE: Say what buffer fits into so much memory, as 8GiB, and what it scores.
      --example-bytes SIZE: What a decoded example takes [default: from features.json, or as
        stored].
      --hosts N: Measure the first of N hosts, as --host 0/N does.
      --loaders: Compare all loaders on this dataset: how each mixes, ends and goes on.

    Examples:
      # How much shuffling are shuffled files and a buffer?
      shardctl quality --shuffle-files --buffer 10000 -d imagenet2012
      # The smallest buffer that reaches a score; --memory 8GiB asks the other way round
      shardctl quality --shuffle-files --target 0.9 -d mnist
      # TFDS, Hugging Face, Grain and torch side by side
      shardctl quality --loaders --batch 256 -d imagenet2012
    """
    from shardctl.spec.host import Host

    project = project_here()
    settings = reading.settings(project)
    if num_hosts is not None:
        if "host" in reading.given():
            raise UsageError("--host I/N says how many hosts there are; give --hosts N without it")
        settings = replace(settings, host=Host(index=0, count=num_hosts))
    if loaders:
        from shardctl.verbs.quality.loaders import compare_loaders

        asked = {"--target": target, "--memory": memory}
        asked |= {"--min-score": min_score, "--example-bytes": example_bytes}
        for name, value in asked.items():
            if value is not None:
                raise UsageError(f"{name} is about one order; leave out --loaders, or {name}")
        compared = compare_loaders(
            chosen_dataset(source, project, settings=settings), spec, settings
        )
        warn(compared.warnings)
        _OF_LOADERS.write(out, compared, picture=picture)
        return
    from shardctl.verbs.quality.answer import minimum_score, shortfall
    from shardctl.verbs.quality.answer import quality as measured_quality

    minimum = None if min_score is None else minimum_score(min_score)
    plan = measured_quality(
        chosen_dataset(source, project, settings=settings),
        spec,
        settings,
        target=target,
        memory=memory,
        example_bytes=example_bytes,
    )
    warn(plan.warnings)
    FORMATS.write(out, plan, picture=picture)
    lacking = None if minimum is None else shortfall(plan, minimum)
    if lacking is not None:
        say(f"check: {lacking}")
        raise typer.Exit(1)
