# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl quality`: how close an order is to a uniform permutation."""

from typing import Annotated, Any

import typer

from shardctl.cli.options.dataset import DatasetOptions
from shardctl.cli.options.order import OrderOptions, asked_for
from shardctl.cli.options.shared import Flag, SpecArgument, Text, option, real_number, typed_again
from shardctl.cli.output import OutputOptions, PictureOption, end_with, formats_of, warn
from shardctl.errors import UsageError

FORMATS = formats_of("quality", pictures=True)
_OF_LOADERS = formats_of("quality", "loaders", pictures=True)


def _known_minimums(incomplete: str) -> list[str]:
    from shardctl.verbs.quality.answer import MINIMUM_WORDS

    return [word for word in MINIMUM_WORDS if word.startswith(incomplete)]


def quality(
    ctx: typer.Context,
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    spec: SpecArgument = None,
    target: Annotated[
        Any,
        option(
            parse=real_number(
                lambda score: 0 < score <= 1,
                "give a score above 0, at most 1; --min-score takes words",
            )
        ),
    ] = None,
    min_score: Annotated[str | None, option(offered=_known_minimums)] = None,
    memory: Text = None,
    example_bytes: Text = None,
    loaders: Flag = False,
    details: Flag = False,
    picture: PictureOption = None,
) -> None:
    """Measure how well an order is shuffled: 0 is storage order, 1 a uniform permutation.

    The answer is a verdict with its score, the reason, and the change that would help most. The
    verdicts are: no shuffle, weak, fair (a score from 0.5), good (from 0.8), close to uniform, as
    good as uniform; or cannot tell, for very few examples.

    Without --batch, batches of 256 are assumed. Missing seeds are replaced by example seeds.

    --details adds each metric, the parts of the epoch and the next epoch, and on a terminal two
    pictures; -o quality.svg has these in colour.

    Options:
      --target SCORE: Find the smallest shuffle buffer that reaches this score, and its memory.
      --min-score SCORE: Exit with 1 if the score is lower; a number, or weak, fair, good or
        uniform.
      --memory SIZE: Find the buffer that fits into this much memory, as 8GiB, and its score.
      --example-bytes SIZE: Size of a decoded example [default: from features.json, or as
        stored].
      --loaders: Compare all data loaders on this dataset; how each shuffles, ends and resumes.
      --details: Show all metrics; the parts of the epoch, the next epoch, and pictures.

    Examples:
      # How well do shuffled files and a buffer shuffle?
      shardctl quality --shuffle-files --buffer 10000 -d imagenet2012
      # The smallest buffer that reaches a score; --memory 8GiB asks the other way round
      shardctl quality --shuffle-files --target 0.9 -d mnist
      # TFDS, Hugging Face, Grain and torch side by side
      shardctl quality --loaders --batch 256 -d imagenet2012
    """
    if loaders:
        from shardctl.verbs.quality.compare_loaders import compare_loaders

        asked = {"--target": target, "--memory": memory, "--details": details or None}
        asked |= {"--min-score": min_score, "--example-bytes": example_bytes}
        for name, value in asked.items():
            if value is not None:
                raise UsageError(f"{name} is about one order; leave out --loaders, or {name}")
        dataset, settings = asked_for(source, reading)
        compared = compare_loaders(dataset, spec, settings)
        warn(compared.warnings)
        _OF_LOADERS.write(out, compared, picture=picture)
        return
    from shardctl.verbs.quality.answer import minimum_score, shortfall
    from shardctl.verbs.quality.answer import quality as measured_quality

    minimum = None if min_score is None else minimum_score(min_score)
    dataset, settings = asked_for(source, reading)
    sizes: Any = {"memory": memory, "example_bytes": example_bytes}
    plan = measured_quality(dataset, spec, settings, target=target, **sizes)
    warn(plan.warnings)
    picture = False if picture is None and not details else picture

    def again(change: str) -> str:
        if settings.stages is not None and "--buffer" in change:
            return ""  # the shuffle of --stages is to be changed, which no option does
        names = [word for word in change.split() if word.startswith("--")]
        replaced = {*names, *filter(None, map(_REPLACES.get, names)), "--target", "--memory"}
        typed = [] if spec is None else [spec]
        line = typed_again(ctx, typed, leaving_out={*replaced, "--output", "--format"})
        return f"{line} {change}"

    FORMATS.write(out, plan, picture=picture, details=details, again=again)
    end_with(filter(None, [None if minimum is None else shortfall(plan, minimum)]))


# What an option that a change adds cannot stand beside.
_REPLACES = {"--cycle": "--cpus", "--shuffle-seed": "--shuffle-files"}
