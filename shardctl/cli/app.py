"""The commands as one Typer application, made once for the commands that it has."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from shutil import get_terminal_size
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

import shardctl
from shardctl.cli.formats import Formats
from shardctl.cli.options.shared import ColorOption, spelled_out
from shardctl.cli.panels import (
    COMMAND_PANELS,
    OPTION_PANELS,
    ORDER,
    OUTPUT,
    THIS_COMMAND,
    command_panel,
)
from shardctl.guide.guides import GUIDE_OF_COMMAND

_EXAMPLES = "Examples:\n"
_HELP = f"""\
Which examples of a TensorFlow dataset are read, from which files, in which order, on which host:
answered from metadata alone.

shardctl COMMAND -h shows the options of a command, and examples.

{_EXAMPLES}
# Which files does a tenth of ImageNet come from?
shardctl plan 'train[:10%]' -d imagenet2012
# In which order are its examples read with this seed?
shardctl simulate --shuffle-seed 42 -d imagenet2012
# Where does a job go on that stopped at step 1234?
shardctl resume --steps 1234 --batch 256 -d imagenet2012
"""
_HELP_NAMES = ["-h", "--help"]
_EPILOG = (
    "Quote specs: 'train[40:]' holds characters that shells read. "
    "Exit codes: 0 done, 1 a check found something, 2 bad input. "
    "shardctl help lists the guides: shardctl help questions is where to begin."
)


_ALIASES = (
    "Names in parentheses are those of TFDS and tf.data. Where a name is that of one option, it is "
    "understood too: --interleave_cycle_length 8 is --cycle 8. In options - and _ are the same."
)


class _WithHelpPage:
    """Its help has a panel for each subject; the examples at the end of the text are apart."""

    name: str | None
    epilog: str | None
    get_params: Any

    def __init__(self, *given: Any, help: str | None = None, **named: Any) -> None:
        text, _, examples = inspect.cleandoc(help or "").partition(_EXAMPLES)
        named["help"] = re.split(r"^(?:Arguments|Options):$", text, flags=re.M)[0].rstrip()
        super().__init__(*given, **named)
        self.examples = tuple(line.strip() for line in examples.splitlines() if line.strip())

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.strip("{}") for piece in pieces]  # to Typer what is needed stands in braces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[Any]] = {"Arguments": [], **{title: [] for title in OPTION_PANELS}}
        for parameter in self.get_params(ctx):
            is_option = parameter.param_type_name == "option"
            title = getattr(parameter, "rich_help_panel", None) or THIS_COMMAND
            title = OUTPUT if parameter.name == "help" else title
            record = parameter.get_help_record(ctx)
            panels[title if is_option else "Arguments"] += [record] if record else []
        commands = getattr(self, "commands", {})
        if commands:
            panels = {"Options": [entry for entries in panels.values() for entry in entries]}
            of_commands: dict[str, list[Any]] = {title: [] for title in COMMAND_PANELS}
            for name, command in commands.items():
                entry = (name, command.get_short_help_str(limit=200))
                of_commands[command_panel(name)].append(entry)
            panels = of_commands | panels
        for title, entries in panels.items():
            if entries:
                with formatter.section(title):
                    # Names as ReadConfig.shuffle_reshuffle_each_iteration stay whole.
                    formatter.write_dl(entries, col_max=26 if formatter.width >= 70 else 8)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.examples))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        guide = GUIDE_OF_COMMAND.get(self.name or "")
        panels = {getattr(one, "rich_help_panel", None) for one in ctx.command.params}
        aliases = _ALIASES if ORDER in panels else None
        for text in filter(None, (self.epilog, aliases, guide and f"Guide: shardctl help {guide}")):
            formatter.write_paragraph()
            formatter.write_text(text)


class _Command(_WithHelpPage, TyperCommand):
    """Its options are understood by their other names, too."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        options = [name for param in self.params for name in (*param.opts, *param.secondary_opts)]
        names = {name.lstrip("-") for name in (*options, *_HELP_NAMES)}

        def own_name(name: str) -> str:
            if name in names:
                return name
            from shardctl.cli.options.names import long_names, main_name

            return main_name(long_names(options), name)

        columns = get_terminal_size().columns
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
        formats: Formats = module.FORMATS
        page = inspect.getdoc(command) or ""
        summary = " ".join(page.partition("\n\n")[0].split())
        register = app.command(name, cls=_Command, help=page, short_help=summary)
        register(spelled_out(command, formats))
    return typer.main.get_command(app)


def module_of(name: str) -> str:
    """Return the module of a command: that of a verb, or `help`, which has no answer."""
    return "shardctl.cli.help" if name == "help" else f"shardctl.verbs.{name}.command"


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shardctl {shardctl.__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False,
        "--version",
        "-V",
        help="Show the version and exit.",
        callback=_show_version,
        is_eager=True,
    ),
    color: ColorOption = None,
) -> None:
    pass
