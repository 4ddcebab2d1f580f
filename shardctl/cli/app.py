"""The commands as one Typer application, made once for the commands that it has."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from shutil import get_terminal_size
from textwrap import dedent
from types import MappingProxyType
from typing import Annotated, Any, TypeGuard, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

import shardctl
from shardctl.base.text import choices, nearest_first, quoted
from shardctl.cli import output
from shardctl.cli.options.dataset import DatasetOptions
from shardctl.cli.options.shared import Parser, Shared, Word, main_name
from shardctl.errors import ShardctlError, UsageError
from shardctl.guide.guides import GUIDE_OF_COMMAND
from shardctl.loaders.loader import LOADERS
from shardctl.settings.table import SETTING_BY_FIELD

WHOLE = "shardctl.whole_page"  # in the meta of a context: the page is to have all options

_OTHER_COMMANDS = "This project, and help"
_COMMANDS = {
    "Datasets and their files": ("layout", "plan", "list", "index"),
    "The order of examples": ("simulate", "locate", "quality", "report"),
    "Several hosts": ("hosts", "eval"),
    "After an interruption": ("resume", "audit", "rehearse"),
    "Checks, in CI too": ("lint", "snapshot", "diff", "verify", "inspect"),
}
_EXAMPLES = "Examples:\n"
_HELP = f"""\
Which examples of a TensorFlow dataset are read, from which files, in which order, on which host:
answered from metadata alone.

shardctl COMMAND -h shows the options that most people set, and examples; --help-all shows all.

{_EXAMPLES}
# Which files does a tenth of ImageNet come from?
shardctl plan 'train[:10%]' -d imagenet2012
# In which order are its examples read with this seed?
shardctl simulate --shuffle-seed 42 -d imagenet2012
# Where does a job resume that stopped at step 1234?
shardctl resume --steps 1234 --batch 256 -d imagenet2012
"""
_HELP_NAMES = ["-h", "--help"]
_EPILOG = (
    "Quote specs, as 'train[40:]': shells give [ ] a meaning of their own. "
    "Exit codes: 0 done, 1 a check found something, 2 bad input. "
    "Begin with shardctl help questions; shardctl help lists all guides."
)


_ALIASES = (
    "Names in parentheses are those of TFDS and tf.data. Where a name is that of one option, it is "
    "understood too: --interleave_cycle_length 8 is --cycle 8. In options - and _ are the same."
)


class _WithHelpPage:
    """Its help has a panel for each subject; the examples at the end of the text are apart."""

    name: str | None
    epilog: str | None
    short_help: str | None
    get_params: Any

    def __init__(self, *given: Any, help: str | None = None, **named: Any) -> None:
        text, _, examples = inspect.cleandoc(help or "").partition(_EXAMPLES)
        named["help"] = re.split(rf"^(?:{_SECTIONS}):$", text, flags=re.M)[0].rstrip()
        super().__init__(*given, **named)
        self.examples = tuple(line.strip() for line in examples.splitlines() if line.strip())

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.strip("{}") for piece in pieces]  # to Typer what is needed stands in braces

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the whole text where `--help-all` asks for it, else its first sentence."""
        if not _is_whole(ctx):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(self.short_help or "")
        else:
            super().format_help_text(ctx, formatter)  # type: ignore[misc]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        is_whole, loader = _is_whole(ctx), _loader_in(ctx.obj or ())
        panels: dict[str, list[Any]] = {
            "Arguments": [],
            **{title: [] for title in output.OPTION_PANELS},
        }
        for parameter in sorted(self.get_params(ctx), key=lambda one: one.param_type_name):
            title = getattr(parameter, "rich_help_panel", None) or output.THIS_COMMAND
            title = output.OUTPUT if parameter.name == "help" else title
            title = title if parameter.param_type_name == "option" else "Arguments"
            record = parameter.get_help_record(ctx)
            if record and is_whole:
                panels[title] += [record]
            elif record and _is_in_short(parameter.name, title, loader):
                title = output.SHORT_PANELS.get(title, title)
                panels.setdefault(title, []).append(_in_short(*record))
        commands = getattr(self, "commands", {})
        if commands:
            summaries = {
                name: (name, re.split("[;:,] ", command.short_help)[0].rstrip("."))
                for name, command in commands.items()
            }
            options = [one for panel in panels.values() for one in panel]
            panels = {
                title: [summaries.pop(name) for name in names if name in summaries]
                for title, names in _COMMANDS.items()
            }
            panels |= {_OTHER_COMMANDS: [*summaries.values()], "Options": options}
        for title, entries in panels.items():
            if entries:
                with formatter.section(title):
                    # Names as ReadConfig.shuffle_reshuffle_each_iteration stay whole.
                    formatter.write_dl(entries, col_max=_COLUMN if formatter.width >= 70 else 8)
        with formatter.section("Examples"):
            starts = [at for at, line in enumerate(self.examples) if line.startswith("#")]
            stop = None if is_whole else [*starts, *[None] * 3][_SHORT_EXAMPLES]
            formatter.write("".join(f"  {line}\n" for line in self.examples[:stop]))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        guide = GUIDE_OF_COMMAND.get(self.name or "")
        panels = {getattr(one, "rich_help_panel", None) for one in ctx.command.params}
        is_whole = _is_whole(ctx)
        texts = [self.epilog, _ALIASES if is_whole and output.ORDER in panels else None]
        for text in filter(None, (*texts, guide and f"Guide: shardctl help {guide}")):
            formatter.write_paragraph()
            formatter.write_text(text)
        if not is_whole:
            others = "; those of a loader: --loader NAME -h" if output.LOADER in panels else ""
            formatter.write_text(f"All options: shardctl {self.name} --help-all{others}")


_FIRST_CLAUSE = re.compile(r"[;.] |\.$")
_COLUMN, _LINE = 26, 58  # letters of an option's names, and of a line beside them
_SHORT_EXAMPLES = 2


def _in_short(names: str, text: str) -> tuple[str, str]:
    """Return what `-h` shows of an option: its first clause, and a default that is a few letters.

    >>> _in_short("--reverse / --no-reverse", "From last to first; as x. [default: no]")
    ('--reverse', 'From last to first [default: no]')
    >>> _in_short("--mode exactly-once|at-most-once", "Where it is long (as tf.data calls it)")[0]
    '--mode exactly-once|..'
    """
    names = names.partition(" / ")[0]
    if len(names) > _COLUMN:
        names = re.sub(r"\|.*", "|..", names)
    meaning, before, default = text.partition(" [default: ")
    clause = _FIRST_CLAUSE.split(meaning)[0]
    if len(clause) > _LINE:
        clause = re.sub(r" \(\w+\.[^ ]*\)$", "", clause)
    return names, clause + (before + default if len(default) < 8 else "")


def _is_whole(ctx: Any) -> bool:
    """Return whether a page has all options, by subject: with `--help-all`, or that of a group."""
    return WHOLE in ctx.meta or hasattr(ctx.command, "commands")


def _loader_in(arguments: Sequence[str]) -> str | None:
    """Return the loader that is named on the command line, where one but TFDS's is."""
    # "--loader=grain" and "--loader grain" alike.
    words = [word for argument in arguments for word in argument.split("=", 1)]
    named = [value for option, value in pairwise(words) if option == "--loader"]
    return named[-1] if named and named[-1] in LOADERS else None


def _is_in_short(name: str, panel: str, loader: str | None) -> bool:
    """Return whether `-h` shows an option: the command's own, or one that most people set."""
    if panel in (output.ORDER, output.HOSTS, output.LOADER):
        setting = SETTING_BY_FIELD[name]
        if loader is None:
            return setting.is_common
        return setting.is_read_by(loader) and (setting.is_common or setting.about == "loader")
    return panel in ("Arguments", output.THIS_COMMAND) or name in ("dataset", "format", "output")


def _show_whole(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[WHOLE] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


_HelpAll = Annotated[bool, typer.Option("--help-all", callback=_show_whole, is_eager=True)]


class _Command(_WithHelpPage, TyperCommand):
    """Its options are understood by their other names, too."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        options = [name for param in self.params for name in (*param.opts, *param.secondary_opts)]
        # Names with their dashes removed: Typer passes them to `token_normalize_func` that way.
        names = {name.lstrip("-") for name in (*options, *_HELP_NAMES)}

        def own_name(name: str) -> str:
            if name in names:
                return name
            long = {option[2:] for option in options if option.startswith("--")}
            return main_name(long, name)

        columns = get_terminal_size().columns
        # Click wraps help at 50 columns or more; a narrower terminal needs a narrower page.
        if columns < 52:  # which is the least that a help page has else
            extra["terminal_width"] = max(columns - 1, 24)
        return super().make_context(info_name, args, *more, token_normalize_func=own_name, **extra)


class _Commands(_WithHelpPage, TyperGroup):
    pass


@functools.cache
def application(*names: str) -> Any:
    """Return the application with some of its commands, each a function named like its module.

    It is a group as Click has them, and the same one each time: describing a command takes longer
    than running most of them, which a program may do often that calls `main`.
    """
    app = typer.Typer(
        name="shardctl",
        cls=_Commands,
        help=_HELP,
        epilog=_EPILOG,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": _HELP_NAMES},
    )
    app.callback()(_root)
    for name in names:
        module = importlib.import_module(module_of(name))
        command = getattr(module, name)
        formats: output.Formats = module.FORMATS
        page = inspect.getdoc(command) or ""
        summary = " ".join(page.partition("\n\n")[0].split())
        register = app.command(name, cls=_Command, help=page, short_help=summary)
        register(spelled_out(command, formats))
    return typer.main.get_command(app)


def module_of(name: str) -> str:
    """Return the module of a command: that of a verb, or the one of those without an answer."""
    is_help = name in ("help", "completion")
    return "shardctl.cli.help" if is_help else f"shardctl.verbs.{name}.command"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shardctl {shardctl.__version__}")
        raise typer.Exit


_VERSION = typer.Option(
    "--version", "-V", help="Show the version and exit.", callback=_show_version, is_eager=True
)


def _root(version: Annotated[bool, _VERSION] = False) -> None:
    pass


# What a command takes. A group of options is a dataclass whose fields are options,
# or it names its `parameters`. A command takes the group as one parameter; Typer is shown the
# options in its place.

Documented = Mapping[str, tuple[str, str, str | None]]  # the metavar, the help, the panel
# The parts of a docstring, each with the panel of its options, if it is not that of the command.
_PARTS = {
    "Arguments": None,
    "Options": None,
    "More options": output.MORE,
    "Output options": output.OUTPUT,
}
_SECTIONS = "|".join(_PARTS)


def options_of(*documented: object) -> Documented:
    """Return what docstrings say of options, by first names, and of arguments, by parameters."""
    found = {}
    for one in documented:
        doc = inspect.getdoc(one) or ""
        # The docstring of a command or group is the one place where its options are described.
        for title, section in re.findall(rf"^({_SECTIONS}):\n((?:  .*\n?)+)", doc, re.MULTILINE):
            for entry in re.split(r"\n(?=\S)", dedent(section).strip()):
                head, _, meaning = " ".join(entry.split()).partition(": ")
                # "--output, -o FILE": the names, then what stands for the value.
                names = re.findall(r"(?:^|, )(-*[\w-]+)", head)
                metavar = head.removeprefix(", ".join(names)).strip()
                found[names[0]] = (metavar, meaning, _PARTS[title])
    return found


_SHARED = options_of(Shared)


def _is_group(annotation: object) -> TypeGuard[type[Any]]:
    return isinstance(annotation, type) and (
        is_dataclass(annotation) or hasattr(annotation, "parameters")
    )


def _parameters_of(group: type[Any], formats: output.Formats) -> list[inspect.Parameter]:
    """Return a parameter for each option of a group: those it names itself, else its fields."""
    if hasattr(group, "parameters"):
        return [typer_parameter(*one) for one in group.parameters()]
    annotations = get_type_hints(group, include_extras=True)
    # Commands have different formats, so that option is made by the command's own `Formats`.
    if group is output.OutputOptions:
        annotations["format"] = formats.option
        if "json" not in formats.names:
            del annotations["json"]
    panel = getattr(group, "panel", None)
    # From base to derived class, so that a derived docstring wins.
    said = options_of(*reversed(group.__mro__))
    return [
        typer_parameter(one.name, annotations[one.name], one.default, panel, said)
        for one in fields(group)
        if hasattr(annotations.get(one.name), "__metadata__")
    ]


def typer_parameter(
    name: str,
    annotation: Any,
    default: Any = None,
    panel: str | None = None,
    said: Documented = MappingProxyType({}),
) -> inspect.Parameter:
    """Return a parameter as Typer takes it: its option has names, words, a panel, named faults."""
    said = {**_SHARED, **said}
    if hasattr(annotation, "__metadata__") and isinstance(annotation.__metadata__[0], OptionInfo):
        info, of = copy(annotation.__metadata__[0]), annotation.__origin__
        # A parameter `batch_size` is the option --batch-size unless a name is given.
        own = name.replace("_", "-")
        flag = f"--{own}" if info.default is ... else str(info.default)
        if flag in said:
            info.metavar, info.help, panel = said[flag][0], said[flag][1], said[flag][2] or panel
        info.rich_help_panel = info.rich_help_panel or panel
        if of is Any and info.parser is None:  # without docstrings (python -OO) any word is taken
            words = (info.metavar or "").split("|")
            info.parser = _one_of(words) if words[1:] else str
        # Three states for a switch: --x, --no-x, or not given.
        info.default = f"--{own}/--no-{own}" if info.default is ... and of == bool | None else flag
        if info.parser is not None:
            info.parser = _naming(flag, info.parser)
        annotation = Annotated[of, info]
    elif hasattr(annotation, "__metadata__") and name in said:
        info = copy(annotation.__metadata__[0])
        info.metavar, info.help, _ = said[name]
        annotation = Annotated[annotation.__origin__, info]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _one_of(words: Sequence[str]) -> Parser:
    def parse(text: Any) -> str:
        if text not in words:
            raise UsageError(f"choose from {choices(nearest_first(text, words))}")
        return str(text)

    return parse


def _naming(flag: str, parse: Parser) -> Parser:
    """Return a parser that says which option has a value that breaks a rule."""

    def named(text: Any) -> Any:
        try:
            return parse(text)
        except UsageError as error:
            raise UsageError(f"{flag} {quoted(text)}: {error}") from None

    return named


_ALWAYS_KEEP = ("audit", "snapshot", "diff", "lint", "verify", "eval", "rehearse")


def _keeps(command: str, values: Mapping[str, Any]) -> bool:
    """Return whether an answer is kept or decides something, and not only looked at."""
    to_file = values.get("output") not in (None, "-")
    checks = bool(values.get("check")) or values.get("min_score") is not None
    # What `init` writes is which dataset is chosen.
    return command in _ALWAYS_KEEP or (command != "init" and (to_file or checks))


def _read_stdin_once(values: Mapping[str, Any]) -> None:
    """Refuse several options and arguments that are to read stdin; as an output `-` is stdout."""
    read = [value for name, value in values.items() if name != "output"]
    # An option may be given several times; each of its values counts.
    texts = [text for value in read for text in (value if isinstance(value, list) else [value])]
    if texts.count("-") > 1:
        raise UsageError("- is stdin, which can be read only once; name a file")


def spelled_out(command: Callable[..., None], formats: output.Formats) -> Callable[..., None]:
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
    parameters += [typer_parameter("color", Word), typer_parameter("help_all", _HelpAll)]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        # Heeded since the command began, see `cli.output`, and on the way here.
        del values["color"], values["help_all"]
        _read_stdin_once(values)
        keeps = _keeps(command.__name__, values)
        for name, (group, names) in groups.items():
            values[name] = group(**{member: values.pop(member) for member in names})
            if group is DatasetOptions:
                values[name] = replace(values[name], must_be_named=keeps)
            if group is output.OutputOptions:
                chosen = formats.chosen(values[name], picture=values.get("picture"))
                values[name] = replace(values[name], format=chosen)
        try:
            with output.ProgressBars():
                command(**values)
        except ShardctlError as error:
            for name in groups:  # a group knows what was taken from shardctl.yaml in its place
                if hasattr(values[name], "located"):
                    error = values[name].located(error)
            raise error

    # Typer reads the signature and the annotations, not the function.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
