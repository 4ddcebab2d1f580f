"""A call as a stage or a source is written: its name, its arguments, and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal

from shardctl.core.nearness import did_you_mean
from shardctl.core.stages.stages import Opaque, Source, Stage
from shardctl.core.text import choices, quoted
from shardctl.errors import UsageError

# "code" is what a script computes with, which decides nothing here; of a "function" the name.
# What is "written" is a literal, or code.
Takes = Literal["value", "pipeline", "pipelines", "whole", "spec", "code", "function", "written"]
Made = Callable[[dict[str, Any]], tuple[Stage | Source, ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Parameter:
    """An argument of a call: its own name, those of tf.data, and what it takes.

    by_name: not taken by its place.
    """

    name: str
    others: tuple[str, ...] = ()
    takes: Takes = "value"
    by_name: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Call:
    """A call; `parameters` are in the order of tf.data.

    made: its stages, of the values of arguments. of: the class whose name it has, None for a call
    that stands for another. anything: what else is given is not read. own_settings: so are
    settings of the reader.
    """

    name: str
    made: Made
    parameters: tuple[Parameter, ...] = ()
    of: Any = None
    is_source: bool = False
    anything: bool = False
    own_settings: bool = False

    @property
    def rest(self) -> Parameter | None:
        """The parameter that takes all that is given by place, None where there is none."""
        first = self.parameters[0] if self.parameters else None
        return first if first is not None and first.takes in ("pipelines", "whole") else None

    @property
    def main(self) -> Parameter | None:
        """The argument that stands alone, as the buffer of a shuffle; None where none does."""
        read = [p for p in self.parameters if p.name]
        return read[0] if read and self.name != "with_options" else None

    @property
    def is_offered(self) -> bool:
        """Whether it is offered where a stage is to be chosen: not what another name says too."""
        return self.of is not None and self.of is not Opaque and self.of.name == self.name

    @property
    def needed(self) -> list[str]:
        """The arguments that have no default."""
        of = () if self.of is None else fields(self.of)
        return [field.name for field in of if field.default is MISSING]

    def parameter(self, name: str) -> Parameter:
        """Return the parameter of a name.

        Raises:
            UsageError: there is none.
        """
        for parameter in self.parameters:
            if name == parameter.name or name in parameter.others:
                return parameter
        if self.anything or name == "name":  # of the operation, which every call of tf.data takes
            return Parameter(name="", takes="code")
        if self.own_settings:
            return Parameter(name=name)
        own = [parameter.name for parameter in self.parameters if parameter.name]
        known = [other for parameter in self.parameters for other in parameter.others]
        near = did_you_mean(name, [*own, *known])
        raise UsageError(f"no argument {quoted(name)}; {near}there are: {choices(own)}")

    def placed(self, index: int) -> Parameter:
        """Return the parameter at a place.

        Raises:
            UsageError: there are not so many.
        """
        placed = [parameter for parameter in self.parameters if not parameter.by_name]
        if index < len(placed):
            return placed[index]
        # Of a function that is written out `lambda x, y` is the first part.
        if self.anything or (placed and placed[-1].takes == "code"):
            return Parameter(name="", takes="code")
        if self.name == "range":
            raise UsageError("range counts from 0 by 1: range(stop)")
        said = f"{len(placed)} at most" if placed else "none"
        raise UsageError(f"too many arguments by their place: {said}")

    def stages(self, given: Sequence[tuple[str, Any]]) -> tuple[Stage | Source, ...]:
        """Return what the call makes of arguments, each by its own name ("" for what is not read).

        Raises:
            UsageError: one is there twice, is missing or is out of range.
        """
        values: dict[str, Any] = {}
        for name, value in given:
            if name in values:
                raise UsageError(f"{name} is there twice")
            if name:
                values[name] = value
        missing = [name for name in self.needed if name not in values]
        if missing:
            raise UsageError(f"{missing[0]} is needed")
        return self.made(values)


def said_of(part: Stage | Source) -> Mapping[str, Any]:
    """Return the arguments of a stage or source that are not its defaults."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {
        field.name: values[field.name]
        for field in fields(part)
        if field.default is MISSING or values[field.name] != field.default
    }
