"""The panels of help pages: under which title an option or a command is listed.

A group of options names its panel where its options are declared. An option of which nobody says
so is the command's own; a command of which nobody says so is among those that help.
"""

from __future__ import annotations

THIS_COMMAND = "This command"
TFDS = "Metadata for TFDS"
ORDER = "Order"
HOSTS = "Hosts"
LOADER = "Other loaders"
DATASET = "Dataset"
OUTPUT = "Output"

# In the order of a help page.
OPTION_PANELS = (THIS_COMMAND, TFDS, ORDER, HOSTS, LOADER, DATASET, OUTPUT)

_OTHER_COMMANDS = "This project, and help"
_COMMANDS = {
    "Datasets and their files": ("layout", "plan", "list", "index"),
    "The order of examples": ("simulate", "locate", "quality", "report"),
    "Several hosts": ("hosts", "eval"),
    "After an interruption": ("resume",),
    "Checks, in CI too": ("lint", "snapshot", "diff", "verify", "inspect"),
}
_PANEL_OF = {name: panel for panel, names in _COMMANDS.items() for name in names}

# In the order of a help page.
COMMAND_PANELS = (*_COMMANDS, _OTHER_COMMANDS)


def command_panel(name: str) -> str:
    """Return the title under which a command is listed.

    >>> command_panel("plan"), command_panel("help")
    ('Datasets and their files', 'This project, and help')
    """
    return _PANEL_OF.get(name, _OTHER_COMMANDS)
