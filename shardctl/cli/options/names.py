"""What options are called besides their own names: `-` or `_`, and the names of TFDS and tf.data.

A command asks about each word that could be an option, so nothing is loaded for its own names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from shardctl.errors import UsageError

# Of one meaning: some commands have one, some the other; TFDS's `split` is a spec.
_FORMS = {"step": "steps", "steps": "step", "split": "spec"}


def long_names(options: Iterable[str]) -> frozenset[str]:
    """Return the long ones of options, without their dashes."""
    return frozenset(option[2:] for option in options if option.startswith("--"))


def main_name(names: Collection[str], name: str) -> str:
    """Return which of a command's long options a name means, all without dashes in front.

    A name that means none stays as it is.

    >>> names = ["cycle", "shuffle-seed", "buffer-seed", "reverse", "no-reverse"]
    >>> [main_name(names, name) for name in ("shuffle_seed", "cycle_length", "no_reverse", "x")]
    ['shuffle-seed', 'cycle', 'no-reverse', 'x']

    Raises:
        UsageError: several could be meant.
    """
    if name in names or len(name) == 1:
        return name
    meant = next((other for other in _meant(name) if other in names), None)
    if meant is not None:
        return meant
    shared = _several(names, name)
    if shared is not None:
        raise UsageError(shared)
    return name


def _meant(name: str) -> Iterator[str]:
    """Yield the options that a name may stand for."""
    from shardctl.core.settings.names import setting_called
    from shardctl.rendering.text.command_line import option_name

    dashed = name.replace("_", "-")
    yield dashed
    off = "no-" if dashed.startswith("no-") else ""
    argument = dashed.removeprefix("no-").replace("-", "_")
    setting = setting_called(argument)
    if setting is not None:
        yield off + setting.option.removeprefix("--")
    yield off + option_name(argument).removeprefix("--")
    if argument in _FORMS:
        yield _FORMS[argument]


def _several(names: Collection[str], name: str) -> str | None:
    from shardctl.core.phrase import phrase
    from shardctl.core.settings.names import which_is_meant
    from shardctl.core.settings.table import SETTINGS

    here = [s.field for s in SETTINGS if s.option.removeprefix("--") in names]
    shared = which_is_meant(name.removeprefix("no-"), here)
    return None if shared is None else phrase("--{}: {}", name, shared)


def other_names(names: Collection[str]) -> dict[str, str]:
    """Return each other name of a command's options with the option, all without dashes in front.

    >>> other_names(["cycle", "seed"])
    {'interleave-cycle-length': 'cycle', 'cycle-length': 'cycle'}
    """
    from shardctl.core.settings.names import SETTING_BY_ALIAS
    from shardctl.rendering.text.command_line import OPTION_BY_ARGUMENT

    others = [*SETTING_BY_ALIAS, *OPTION_BY_ARGUMENT, *_FORMS]
    dashed = (prefix + other.replace("_", "-") for prefix in ("", "no-") for other in others)
    meant = {other: next((n for n in _meant(other) if n in names), None) for other in dashed}
    return {other: name for other, name in meant.items() if name not in (None, other)}
