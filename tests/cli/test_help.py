"""`shardctl help`: one source for options and guides, on a terminal, in a pipe, as a file."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from rich.cells import cell_len

from shardctl.cli.app import WHOLE, application
from shardctl.cli.help import guide_on_terminal
from shardctl.cli.main import COMMANDS
from shardctl.cli.output import DATASET, HOSTS, OPTION_PANELS, ORDER, OUTPUT, paged
from shardctl.draw.tables import Screen
from shardctl.guide.guides import GUIDE_OF_COMMAND, guide_questions, read_guide
from shardctl.loaders.loader import LOADERS
from shardctl.settings.table import SETTINGS
from tests.children import run_on_a_terminal
from tests.cli.conftest import Outcome, Shardctl, Terminal

SUBJECTS = tuple(guide_questions())
BOTH = sorted({*COMMANDS} & {*SUBJECTS})


def test_it_lists_commands_as_the_help_page_does_and_guides_as_well(shardctl: Shardctl) -> None:
    ran = shardctl("help")
    assert (ran.exit_code, ran.stderr) == (0, "")
    before, _, guides = ran.stdout.partition("Guides: shardctl help SUBJECT:\n")
    guides, _, after = guides.partition("\n\n")
    page = shardctl("-h").stdout
    assert " ".join(f"{before}{after}".split()) == " ".join(page.split())
    words = " ".join(guides.split())
    for subject, question in guide_questions().items():
        assert f"{subject} {question}" in words


@pytest.mark.parametrize("name", sorted({*COMMANDS, *SUBJECTS}))
def test_a_name_gets_the_guide_as_it_was_written_and_then_the_options(
    name: str, shardctl: Shardctl
) -> None:
    text = read_guide(name).text if name in SUBJECTS else ""
    if name in COMMANDS:
        options = shardctl(name, "--help-all").stdout
        heading = f"\n## Options of `shardctl {name}`\n\n```text\n"
        text += f"{heading}{options}```\n" if text else options
    assert shardctl("help", name) == Outcome(exit_code=0, stdout=text, stderr="")


@pytest.mark.parametrize("width", [40, 80])
def test_a_terminal_gets_a_guide_laid_out_to_its_width(width: int) -> None:
    text, _ = run_on_a_terminal("help", "orders", columns=width, NO_COLOR="1")
    assert text.lstrip().startswith(read_guide("orders").question[:30])
    assert max(map(len, text.splitlines())) <= width
    assert "```" not in text
    assert "\x1b" not in text


def test_a_terminal_gets_the_options_as_the_command_shows_them() -> None:
    text, _ = run_on_a_terminal("help", "hosts", columns=80)
    options, _ = run_on_a_terminal("hosts", "--help-all", columns=80)
    assert text.endswith(f"\n\n{options}")
    assert "\x1b[1m" in text  # bold


def test_the_page_of_each_command_names_a_guide_that_is_there(shardctl: Shardctl) -> None:
    assert set(GUIDE_OF_COMMAND) == {*COMMANDS}
    assert {*GUIDE_OF_COMMAND.values()} <= {*SUBJECTS}
    assert [name for name in BOTH if GUIDE_OF_COMMAND[name] != name] == []
    for command, subject in GUIDE_OF_COMMAND.items():
        assert f"\nGuide: shardctl help {subject}\nAll options: " in shardctl(command, "-h").stdout
        assert shardctl(command, "--help-all").stdout.endswith(
            f"\nGuide: shardctl help {subject}\n"
        )


def words(text: str) -> str:
    """Return what is read, without blanks, rules and bullets."""
    return re.sub(r"[\s─•]", "", text)


@pytest.mark.parametrize("subject", guide_questions())
@pytest.mark.parametrize("width", [40, 80, pytest.param(200, marks=pytest.mark.slow)])
def test_every_guide_fits(subject: str, width: int) -> None:
    guide = read_guide(subject)
    text = guide_on_terminal(guide, Screen(width=width))
    assert max(map(cell_len, text.splitlines())) <= min(width, 120)
    assert "\x1b" not in text
    assert not re.search(r"\]\([a-z-]+\.md", text)  # the command that shows it is named instead
    if "resume.md)" in guide.text:
        assert "(shardctl help resume)" in " ".join(text.split())
    assert "…" not in text or "…" in guide.text  # what Rich writes where it cuts
    for code in re.findall(r"```\w+\n(.*?)```", guide.text, re.DOTALL):
        assert words(code) in words(text)


# The pages of -h and --help-all.


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_page_fits_on_a_screen(
    name: str, shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = shardctl(name, "-h").stdout
    assert sum(max(1, -(-len(line) // 80)) for line in page.splitlines()) <= 45
    listed = re.findall(r"^  (?:-\w, )?--([a-z-]+)", page, flags=re.MULTILINE)
    common = [s.option[2:] for s in SETTINGS if s.is_common]
    if "--block" in shardctl(name, "--help-all").stdout.split():
        assert {*common} <= {*listed}
    assert not {"stages", "streaming", "loader", "color"} & {*listed}
    assert f"\nAll options: shardctl {name} --help-all" in page


@pytest.mark.parametrize("loader", LOADERS)
def test_a_loader_that_is_named_has_its_options_on_the_short_page(
    loader: str, shardctl: Shardctl
) -> None:
    page = shardctl("simulate", "--loader", loader, "-h").stdout
    listed = re.findall(r"^  (--[a-z-]+)", page, flags=re.MULTILINE)
    read = {s.option for s in SETTINGS if s.about == "loader" and s.is_read_by(loader)}
    assert read <= {*listed}
    assert "--cycle" not in listed


@pytest.mark.parametrize("pager", ["", "cat", "tr a-z A-Z"])
def test_help_goes_through_the_pager_where_people_read(
    pager: str, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv("PAGER", pager)
    assert not paged("text\n")  # stdin and stdout are no terminals
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{name}", Terminal())
    assert paged("text\n") == (pager == "tr a-z A-Z")
    monkeypatch.undo()
    assert capfd.readouterr().out.endswith("TEXT\n" if pager.startswith("tr") else "")


def page_of(group: Any, name: str) -> str:
    command = group.commands[name]
    root = group.make_context("shardctl", [], resilient_parsing=True)
    root.meta[WHOLE] = True
    return str(command.get_help(typer.Context(command, info_name=name, parent=root)))


def options_in(page: str) -> dict[str, list[str]]:
    """Return the long options of each panel."""
    panels = re.split(r"^(\S.*):\n(?=  )", page, flags=re.MULTILINE)
    return {
        title: re.findall(r"^  (?:-\w, |--[a-z-]+, )*(--[a-z-]+)", body, flags=re.MULTILINE)
        for title, body in zip(panels[1::2], panels[2::2], strict=True)
        if title in OPTION_PANELS
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_in_one_panel_and_the_own_panel_is_first(name: str) -> None:
    group = application(*COMMANDS)
    panels = options_in(page_of(group, name))
    assert list(panels) == [title for title in OPTION_PANELS if title in panels]
    listed = {option for options in panels.values() for option in options}
    known = [[x for x in param.opts if x[:2] == "--"] for param in group.commands[name].params]
    assert {names[-1] for names in known if names} <= listed
    if "--cycle" in listed:
        for title, about in ((ORDER, "order"), (HOSTS, "hosts")):
            assert panels[title] == [s.option for s in SETTINGS if s.about == about]
    assert "--color" in panels[OUTPUT]
    assert "--help" in panels[OUTPUT]
    assert "--dataset" not in listed or "--dataset" in panels[DATASET]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_shows_the_first_sentence_of_each(name: str) -> None:
    command = application(name).commands[name]
    summary = command.short_help
    assert summary.endswith(".")
    assert "\n" not in summary
    assert " ".join(command.help.split()).startswith(summary)
