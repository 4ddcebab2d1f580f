"""Options of Beam, checked before anything runs: Beam itself drops those that it does not know."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardctl.core.nearness import did_you_mean, nearest_first
from shardctl.core.text import choices, printable, quoted
from shardctl.errors import MissingDependencyError, UsageError

# The runner that is used where none is named. Beam's `DirectRunner` would first look for Prism, a
# program that it downloads, and then be this one.
_DEFAULT = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
# Runners whose job server, a program of Java, may know options that Beam's Python does not.
_WITH_JOB_SERVER = ("FlinkRunner", "SparkRunner", "PortableRunner", "KafkaStreamsRunner")


@dataclass(frozen=True, kw_only=True)
class BeamOptions:
    """Checked options: those of Beam, the runner's name and class, and where it keeps its files.

    local: whether its workers are processes of this machine.
    """

    pipeline: Any
    runner: Any
    name: str
    local: bool
    temp_location: str | None


def beam_options(words: Sequence[str]) -> BeamOptions:
    """Return options as Beam takes them, `--runner=FlinkRunner --temp_location=gs://bucket/tmp`.

    Raises:
        UsageError: an option that Beam does not know, a value that it does not take, a runner that
            it does not have, or no place for results that workers elsewhere can write to.
        MissingDependencyError: Beam, or a package that the runner needs, is not installed.
    """
    _beam()
    from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

    unknown = _unknown(words)
    pipeline = PipelineOptions(list(words))
    given = pipeline.get_all_options()
    name = (given["runner"] or "").rpartition(".")[2]
    runner = _runner(given["runner"] or _DEFAULT)
    kind = type(runner).__name__
    if unknown and kind not in _WITH_JOB_SERVER:
        raise UsageError(_not_known(unknown[0]))
    local = not given["runner"] or kind in (*StandardOptions.LOCAL_RUNNERS, "FnApiRunner")
    if not local and not given["temp_location"]:
        raise UsageError(
            f"{kind} has its workers elsewhere: give --temp_location after --, a folder that they "
            "and this machine can write to, where the counts come back"
        )
    return BeamOptions(
        pipeline=pipeline,
        runner=runner,
        name=name or "FnApiRunner",
        local=local,
        temp_location=given["temp_location"],
    )


def _beam() -> Any:
    try:
        import apache_beam
    except ImportError as error:
        raise MissingDependencyError(
            f"Apache Beam is needed for this and cannot be imported ({error}); "
            "install it with: pip install 'shardctl[beam]'"
        ) from error
    return apache_beam


def _parser() -> Any:
    """Return the parser of all options of Beam, its own and those of its runners and stores."""
    from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

    parser = _BeamArgumentParser(allow_abbrev=False, prog="--", add_help=False)
    # A class may be there twice, when a module of it was imported again.
    for options in {str(options): options for options in PipelineOptions.__subclasses__()}.values():
        options._add_argparse_args(parser)
    return parser


def _unknown(words: Sequence[str]) -> list[str]:
    """Return the words that are no options of Beam, nor their values.

    Raises:
        UsageError: a value that an option does not take.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            _, unknown = _parser().parse_known_args(list(words))
    except SystemExit:
        last = said.getvalue().strip().splitlines()[-1:] or ["they cannot be read"]
        raise UsageError(
            f"options of Beam: {printable(last[0].removeprefix('--: error: '), 300)}"
        ) from None
    found: list[str] = unknown
    return found


def _not_known(word: str) -> str:
    name = word.partition("=")[0]
    if not name.startswith("-"):
        return f"options of Beam: {quoted(word, 200)} belongs to no option; they begin with --"
    known = [option for action in _parser()._actions for option in action.option_strings]
    asked = did_you_mean(name, known)
    return f"Beam knows no option {quoted(name, 200)}{asked and f'; {asked.strip()}'}"


def _runner(name: str) -> Any:
    """Return the runner of a name."""
    from apache_beam.options.pipeline_options import StandardOptions
    from apache_beam.runners.runner import create_runner

    try:
        return create_runner(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"runner {quoted(name, 200)} cannot be imported: {printable(str(error), 300)}"
        ) from error
    except Exception:
        known = nearest_first(name, StandardOptions.KNOWN_RUNNER_NAMES)
        raise UsageError(
            f"Beam has no runner {quoted(name, 200)}; it has {choices(known)}"
        ) from None
