"""Options that several commands share, each spelled out once.

A group is a dataclass whose fields are Typer options, or names its `parameters` itself. A command
takes the group as one parameter; `spelled_out` shows Typer the options instead and hands the
command the group. A group that several commands have says in which `panel` of a help page its
options are; what says nothing is the command's own.
"""

import contextlib
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import wraps
from textwrap import dedent
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeGuard, get_type_hints

import typer
from typer.models import OptionInfo

from shardctl.base.text import choices, nearest_first, printable, quoted
from shardctl.cli.completion import values as completion
from shardctl.cli.formats import Formats, OutputOptions
from shardctl.cli.output import CHOICES, OPTION, ProgressBars
from shardctl.cli.panels import DATASET, OUTPUT
from shardctl.errors import ShardctlError, UsageError

if TYPE_CHECKING:
    from shardctl.metadata.index.beam_runner import BeamRunner
    from shardctl.metadata.project_file import Project


# An option is called like its parameter, unless it is given another name; what stands for its value
# and what it is are read from "Options:" in the docstring of its command or group. A parser raises
# the rule that a value breaks; `typer_parameter` says of which option, and which value it is.
Parser = Callable[[Any], Any]
Documented = Mapping[str, tuple[str, str]]  # the metavar, the help


def option(*names: str, parse: Parser | None = None, offered: Any = None) -> Any:
    """Return an option with a value."""
    return typer.Option(*names or (...,), parser=parse, autocompletion=offered)


def argument(*, offered: Any = None) -> Any:
    """Return what is no option, which a docstring has under "Arguments:"."""
    return typer.Argument(autocompletion=offered)


def number(*names: str, minimum: int = 1) -> Any:
    """Return an option that takes a whole number."""
    return option(*names, parse=whole_number(minimum))


def flag(*names: str) -> Any:
    """Return an option without a value."""
    return typer.Option(*names or (...,))


def options_of(*documented: object) -> Documented:
    """Return what docstrings say of options, by first names, and of arguments, by parameters."""
    found = {}
    for one in documented:
        doc = inspect.getdoc(one) or ""
        for section in re.findall(r"^(?:Arguments|Options):\n((?:  .*\n?)+)", doc, re.MULTILINE):
            for entry in re.split(r"\n(?=\S)", dedent(section).strip()):
                head, _, meaning = " ".join(entry.split()).partition(": ")
                names = re.findall(r"(?:^|, )(-*[\w-]+)", head)
                metavar = head.removeprefix(", ".join(names)).strip()
                found[names[0]] = (metavar, meaning)
    return found


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


Flag = Annotated[bool, flag()]
Switch = Annotated[bool | None, flag()]
Number = Annotated[Any, number()]
Text = Annotated[str | None, option()]
Texts = Annotated[list[str] | None, option()]
Splits = Annotated[list[str] | None, argument(offered=completion.splits)]
Word = Annotated[Any, option()]  # one of those in its docstring, as python|keras-fit
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
    """Which dataset.

    Options:
      --dataset, -d REF: A folder with dataset_info.json, name[/config][:version], a layout.yaml, or
        record files (a folder, a glob, prefix@1024); several are read as one.
      --data-dir DIR: Where names are looked up, a folder or a URL [default: $TFDS_DATA_DIR,
        ~/tensorflow_datasets].
      --no-cache: Count record files without metadata anew, and keep no counts for next time.
    """

    panel: ClassVar[str] = DATASET

    dataset: Annotated[list[str] | None, option("--dataset", "-d", offered=completion.datasets)] = (
        None
    )
    data_dir: Text = None
    no_cache: Flag = False
    # No option: whether the built-in dataset is no answer, see `_keeps`.
    must_be_named: bool = field(default=False, compare=False)

    @property
    def is_given(self) -> bool:
        """Whether any of the options is given."""
        return any((self.dataset, self.data_dir, self.no_cache))

    def taken(self, project: "Project") -> Iterator[str]:
        """Yield what is left to a project, in words; see `project_here`."""
        from shardctl.metadata.reference import named_dataset
        from shardctl.stores.file_text import working_folder

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
    said = options_of(*reversed(group.__mro__))
    return [
        typer_parameter(one.name, annotations[one.name], one.default, panel, said)
        for one in fields(group)
        if hasattr(annotations[one.name], "__metadata__")
    ]


def typer_parameter(
    name: str,
    annotation: Any,
    default: Any = None,
    panel: str | None = None,
    said: Documented = MappingProxyType({}),
) -> inspect.Parameter:
    """Return a parameter as Typer takes it: its option has names, words, a panel, named faults."""
    if hasattr(annotation, "__metadata__") and isinstance(annotation.__metadata__[0], OptionInfo):
        info, of = copy(annotation.__metadata__[0]), annotation.__origin__
        info.rich_help_panel = info.rich_help_panel or panel
        own = name.replace("_", "-")
        flag = f"--{own}" if info.default is ... else str(info.default)
        if flag in said:
            info.metavar, info.help = said[flag]
        if of is Any and info.parser is None:  # without docstrings (python -OO) any word is taken
            words = (info.metavar or "").split("|")
            info.parser = _one_of(words) if words[1:] else str
        info.default = f"--{own}/--no-{own}" if info.default is ... and of == bool | None else flag
        if info.parser is not None:
            info.parser = _naming(flag, info.parser)
        annotation = Annotated[of, info]
    elif hasattr(annotation, "__metadata__") and name in said:
        info = copy(annotation.__metadata__[0])
        info.metavar, info.help = said[name]
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
    hints, said = get_type_hints(command, include_extras=True), options_of(command)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        annotation = hints[parameter.name]
        if _is_group(annotation):
            members = _parameters_of(annotation, formats)
            groups[parameter.name] = (annotation, [member.name for member in members])
            parameters += members
        else:
            default, name = parameter.default, parameter.name
            parameters.append(typer_parameter(name, annotation, default, said=said))
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
            with ProgressBars():
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
    typer.Option(
        "--runner",
        metavar="local|beam",
        parser=_one_of(("local", "beam")),
        help="What reads the files: this machine, or a Beam pipeline with the options after --.",
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
    from shardctl.metadata.index.beam_runner import BeamRunner

    return BeamRunner(options)
