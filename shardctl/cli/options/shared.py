"""Options that several commands share, each spelled out once.

A group is a dataclass whose fields are Typer options, or names its `parameters` itself. A command
takes the group as one parameter; `spelled_out` shows Typer the options instead and hands the
command the group. A group that several commands have says in which `panel` of a help page its
options are; what says nothing is the command's own.
"""

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeGuard, get_type_hints

import typer
from typer.models import OptionInfo

from shardctl.cli.completion import values as completion
from shardctl.cli.formats import Formats, OutputOptions
from shardctl.cli.output import CHOICES, OPTION, ProgressBars
from shardctl.cli.panels import DATASET, OUTPUT
from shardctl.core.progress import watched_by
from shardctl.core.text import choices, nearest_first, printable, quoted
from shardctl.errors import ShardctlError, UsageError

if TYPE_CHECKING:
    from shardctl.readers.index.beam_runner import BeamRunner
    from shardctl.readers.project_file import Project


# An option is called like its parameter, unless it is given other names. A parser raises the rule
# that a value breaks; `spelled_out` says of which option, and which value it is.
Parser = Callable[[Any], Any]


def option(
    metavar: str,
    text: str,
    *names: str,
    parse: Parser | None = None,
    words: Sequence[str] = (),
    offered: Callable[..., Any] | None = None,
) -> Any:
    """Return an option with a value: what stands for it, its line on the help page, its names.

    words: those that it takes, which a shell is offered.
    """
    if words:
        parse = _one_of(words)
    if words and "|" not in metavar:  # else the metavar is offered
        offered = lambda incomplete: [word for word in words if word.startswith(incomplete)]  # noqa: E731
    return typer.Option(
        *names or (...,), metavar=metavar, help=text, parser=parse, autocompletion=offered
    )


def number(text: str, *names: str, metavar: str = "N", minimum: int = 1) -> Any:
    """Return an option that takes a whole number."""
    return option(metavar, text, *names, parse=whole_number(minimum))


def flag(text: str, *names: str) -> Any:
    """Return an option without a value, with its line on the help page."""
    return typer.Option(*names or (...,), help=text)


def _one_of(words: Sequence[str]) -> Parser:
    def parse(text: Any) -> str:
        if text not in words:
            raise UsageError(f"choose from {choices(nearest_first(text, words))}")
        return str(text)

    return parse


def whole_number(minimum: int | None = None, maximum: int | None = None) -> Callable[[Any], int]:
    """Return a parser of whole numbers; `_` may group digits, as in a spec.

    >>> whole_number()("1_000")
    1000
    """
    bounds = "" if minimum is None else f", at least {minimum},"
    bounds = bounds if maximum is None else f" from {minimum} to {maximum}"

    def parse(text: Any) -> int:
        try:
            found = int(text)
        except ValueError:
            raise UsageError(f"a whole number{bounds} is needed") from None
        if (minimum is not None and found < minimum) or (maximum is not None and found > maximum):
            raise UsageError(f"a whole number{bounds} is needed")
        return found

    return parse


def real_number(fits: Callable[[float], bool], rule: str) -> Callable[[Any], float]:
    """Return a parser of numbers that fit; nan fits nowhere."""

    def parse(text: Any) -> float:
        with contextlib.suppress(ValueError):
            if fits(float(text)):
                return float(text)
        raise UsageError(rule)

    return parse


SpecArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[SPEC]",
        help="What is read, as TFDS writes it [default: train].",
        autocompletion=completion.splits,
    ),
]
AllowVersionOption = Annotated[
    bool,
    flag("Take a --plan of another version or config whose files have the same names and lengths."),
]
# Of every command, and before the command too.
ColorOption = Annotated[
    str | None,
    typer.Option(
        OPTION,
        metavar="WHEN",
        parser=_one_of(CHOICES),
        help="Colour always, never or auto: on a terminal, unless NO_COLOR or FORCE_COLOR is set "
        "[default: auto]",
        rich_help_panel=OUTPUT,
        autocompletion=lambda incomplete: [one for one in CHOICES if one.startswith(incomplete)],
    ),
]


@dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """Which dataset."""

    panel: ClassVar[str] = DATASET

    dataset: Annotated[
        list[str] | None,
        option(
            "REF",
            "A folder with dataset_info.json, name[/config][:version], a layout.yaml, or record "
            "files (a folder, a glob, prefix@1024); several are read as one.",
            "--dataset",
            "-d",
            offered=completion.datasets,
        ),
    ] = None
    data_dir: Annotated[
        str | None,
        option(
            "DIR",
            "Where names are looked up, a folder or a URL "
            "[default: $TFDS_DATA_DIR, ~/tensorflow_datasets].",
        ),
    ] = None
    no_cache: Annotated[
        bool, flag("Count record files without metadata anew, and keep no counts for next time.")
    ] = False
    # No option: whether the built-in dataset is no answer, see `_keeps`.
    must_be_named: bool = field(default=False, compare=False)

    @property
    def is_given(self) -> bool:
        """Whether any of the options is given."""
        return any((self.dataset, self.data_dir, self.no_cache))

    def taken(self, project: "Project") -> Iterator[str]:
        """Yield what is left to a project, in words; see `project_here`."""
        from shardctl.files.file_text import working_folder
        from shardctl.readers.reference import named_dataset

        cwd = working_folder()
        named = named_dataset(self.dataset or (), project=project, env=os.environ, cwd=cwd)
        if named.source == "file":
            yield setting_in_words("dataset", " and ".join(named.refs))
        if self.data_dir is None and project.data_dir is not None:
            yield setting_in_words("data_dir", project.data_dir)


def setting_in_words(name: str, value: object) -> str:
    """Return a setting of a file of settings in a line that lists some.

    >>> [setting_in_words("shuffle_seed", 42), setting_in_words("reverse", False)]
    ['shuffle seed 42', 'no reverse']
    """
    words = printable(name.replace("_", " ").replace("-", " "))
    if isinstance(value, bool):
        return words if value else f"no {words}"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return f"{words} {choices(value, 4)}"
    if isinstance(value, list):
        from shardctl.files.documents import yaml_line

        return f"{words} {printable(yaml_line(value))}"
    return f"{words} {printable(str(value))}"


def _is_group(annotation: object) -> TypeGuard[type[Any]]:
    return isinstance(annotation, type) and (
        is_dataclass(annotation) or hasattr(annotation, "parameters")
    )


def _parameters_of(group: type[Any], formats: Formats) -> list[inspect.Parameter]:
    """Return a parameter for each option of a group: those it names itself, else its fields."""
    if hasattr(group, "parameters"):
        made: list[inspect.Parameter] = group.parameters()
        return made
    annotations = get_type_hints(group, include_extras=True)
    if group is OutputOptions:
        annotations["format"] = formats.option
    panel = getattr(group, "panel", None)
    return [
        typer_parameter(one.name, annotations[one.name], one.default, panel)
        for one in fields(group)
        if hasattr(annotations[one.name], "__metadata__")
    ]


def typer_parameter(
    name: str, annotation: Any, default: Any = None, panel: str | None = None
) -> inspect.Parameter:
    """Return a parameter as Typer takes it: its option has its name, a panel, and named faults."""
    if hasattr(annotation, "__metadata__") and isinstance(annotation.__metadata__[0], OptionInfo):
        info = copy(annotation.__metadata__[0])
        info.rich_help_panel = info.rich_help_panel or panel
        if info.default is ...:
            info.default = f"--{name.replace('_', '-')}"
            if annotation.__origin__ == bool | None:
                info.default += f"/--no-{name.replace('_', '-')}"
        if info.parser is not None:
            info.parser = _naming(str(info.default), info.parser)
        annotation = Annotated[annotation.__origin__, info]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _naming(flag: str, parse: Parser) -> Parser:
    """Return a parser that says which option has a value that breaks a rule."""

    def named(text: Any) -> Any:
        try:
            return parse(text)
        except UsageError as error:
            raise UsageError(f"{flag} {quoted(text)}: {error}") from None

    return named


_ALWAYS_KEEP = ("snapshot", "diff", "lint", "verify", "eval")


def _keeps(command: str, values: Mapping[str, Any]) -> bool:
    """Return whether an answer is kept or decides something, and not only looked at."""
    to_file = values.get("output") not in (None, "-")
    checks = bool(values.get("check")) or values.get("min_score") is not None
    # What `init` writes is which dataset is chosen.
    return command in _ALWAYS_KEEP or (command != "init" and (to_file or checks))


def _read_stdin_once(values: Mapping[str, Any]) -> None:
    """Refuse several options and arguments that are to read stdin; as an output `-` is stdout."""
    read = [value for name, value in values.items() if name != "output"]
    texts = [text for value in read for text in (value if isinstance(value, list) else [value])]
    if texts.count("-") > 1:
        raise UsageError("- is stdin, which can be read only once; name a file")


def spelled_out(command: Callable[..., None], formats: Formats) -> Callable[..., None]:
    """Return `command` with each parameter that is an option group replaced by its options.

    Every command takes `--color` besides.
    A format that the command does not have, or that has no place there, is refused before it
    begins.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        annotation = hints[parameter.name]
        if _is_group(annotation):
            members = _parameters_of(annotation, formats)
            groups[parameter.name] = (annotation, [member.name for member in members])
            parameters += members
        else:
            parameters.append(typer_parameter(parameter.name, annotation, parameter.default))
    parameters.append(typer_parameter("color", ColorOption))

    @wraps(command)
    def run(**values: Any) -> None:
        values.pop("color", None)  # heeded since the command began, see `cli.output`
        _read_stdin_once(values)
        keeps = _keeps(command.__name__, values)
        for name, (group, names) in groups.items():
            values[name] = group(**{member: values.pop(member) for member in names})
            if group is DatasetOptions:
                values[name] = replace(values[name], must_be_named=keeps)
            if group is OutputOptions:
                chosen = formats.chosen(values[name], picture=values.get("picture"))
                values[name] = replace(values[name], format=chosen)
        try:
            with ProgressBars() as bars, watched_by(bars.show):
                command(**values)
        except ShardctlError as error:
            for name in groups:  # a group knows what was taken from shardctl.yaml in its place
                if hasattr(values[name], "located"):
                    error = values[name].located(error)
            raise error

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


# Where files are counted: on this machine, or by Beam, whose options come after `--`.

RunnerOption = Annotated[
    Any,
    option(
        "RUNNER",
        "What reads the files: local, or beam, a pipeline with the options of Beam after --.",
        words=("local", "beam"),
    ),
]


def chosen_runner(
    name: str, words: list[str], typed: Sequence[str], *, jobs: int | None
) -> "BeamRunner | None":
    """Return the runner that an option names, None for this machine, and take its words away.

    words: all words that are no options, of which those after `--` are the last; `typed` is the
    command line as it was typed.
    """
    options = list(typed[typed.index("--") + 1 :]) if "--" in typed else []
    if name == "local":
        if any(word.startswith("--") for word in options):
            raise UsageError("options of Beam, after --, need --runner beam before it")
        return None
    if jobs is not None:
        raise UsageError(
            "--jobs with --runner beam: how many workers there are is said after --, as in "
            "-- --direct_num_workers=4"
        )
    if options:
        del words[-len(options) :]
    from shardctl.readers.index.beam_runner import BeamRunner

    return BeamRunner(options)
