"""Options that several commands share, each spelled out once.

A group is a dataclass whose fields are Typer options, or names its `parameters` itself. A command
takes the group as one parameter; `spelled_out` shows Typer the options instead and hands the
command the group. A group that several commands have says in which `panel` of a help page its
options are; what says nothing is the command's own.
"""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeGuard, get_type_hints

import typer

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
    typer.Option(
        "--allow-version",
        help="Take a --plan of another version or config whose files have the same names and "
        "lengths.",
    ),
]


def whole_number(
    option: str, *, minimum: int | None = None, maximum: int | None = None
) -> Callable[[Any], int]:
    """Return a parser of whole numbers for an option; `_` may group digits, as in a spec.

    >>> whole_number("--take")("1_000")
    1000
    """
    rule = "a whole number is needed"
    if minimum is not None:
        rule = f"a whole number, at least {minimum}, is needed"
    if maximum is not None:
        rule = f"a whole number from {minimum} to {maximum} is needed"

    def parse(text: Any) -> int:
        try:
            number = int(text)
        except ValueError:
            raise UsageError(f"{option} {quoted(text)}: {rule}") from None
        if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
            raise UsageError(f"{option} {quoted(text)}: {rule}")
        return number

    return parse


def number_option(flag: str, text: str, *, metavar: str = "N", minimum: int = 1) -> Any:
    """Return an option that takes a whole number, with its line on the help page."""
    return typer.Option(
        flag, metavar=metavar, parser=whole_number(flag, minimum=minimum), help=text
    )


def _color_choice(text: Any) -> str:
    if text not in CHOICES:
        raise UsageError(f"{OPTION} {quoted(text)}: choose from {choices(CHOICES)}")
    return str(text)


def _color_choices(incomplete: str) -> list[str]:
    return [choice for choice in CHOICES if choice.startswith(incomplete)]


# Of every command, and before the command too.
ColorOption = Annotated[
    str | None,
    typer.Option(
        OPTION,
        metavar="WHEN",
        parser=_color_choice,
        help="Colour always, never or auto: on a terminal, unless NO_COLOR or FORCE_COLOR is set "
        "[default: auto]",
        rich_help_panel=OUTPUT,
        autocompletion=_color_choices,
    ),
]


@dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """Which dataset."""

    panel: ClassVar[str] = DATASET

    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            "-d",
            metavar="REF",
            help="A folder with dataset_info.json, name[/config][:version], a layout.yaml, or "
            "record files (a folder, a glob, prefix@1024); several are read as one.",
            autocompletion=completion.datasets,
        ),
    ] = None
    data_dir: Annotated[
        str | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="Where names are looked up, a folder or a URL "
            "[default: $TFDS_DATA_DIR, ~/tensorflow_datasets].",
        ),
    ] = None
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache",
            help="Count record files without metadata anew, and keep no counts for next time.",
        ),
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
    options = [one for one in fields(group) if hasattr(annotations[one.name], "__metadata__")]
    for one in options:
        for option in annotations[one.name].__metadata__:
            option.rich_help_panel = option.rich_help_panel or getattr(group, "panel", None)
    return [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=annotations[one.name],
        )
        for one in options
    ]


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
            parameters.append(
                parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
            )

    parameters.append(
        inspect.Parameter(
            "color", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=ColorOption
        )
    )

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

_RUNNERS = ("local", "beam")


def _offered(incomplete: str) -> list[str]:
    return [name for name in _RUNNERS if name.startswith(incomplete)]


RunnerOption = Annotated[
    str,
    typer.Option(
        "--runner",
        metavar="RUNNER",
        help="What reads the files: local, or beam, a pipeline with the options of Beam after --.",
        autocompletion=_offered,
    ),
]


def chosen_runner(
    name: str, words: list[str], typed: Sequence[str], *, jobs: int | None
) -> "BeamRunner | None":
    """Return the runner that an option names, None for this machine, and take its words away.

    words: all words that are no options, of which those after `--` are the last; `typed` is the
    command line as it was typed.
    """
    if name not in _RUNNERS:
        known = choices(nearest_first(name, _RUNNERS))
        raise UsageError(f"no runner {quoted(name)}; choose from {known}")
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
