"""The table of calls: names of stages and sources, of their arguments, and what each makes.

The text and the YAML form of stages are two ways to write the same calls; both are read and written
by this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from shardctl.base.text import choices, near_or_all, nearest, quoted
from shardctl.errors import UsageError
from shardctl.stages import stages
from shardctl.stages.listed import Interleave, ListFiles, Records
from shardctl.stages.part import Parameter, Part, Source, value
from shardctl.stages.stages import CACHE_IN_FILE, WHY_OPEN, Opaque

Made = Callable[[dict[str, Any]], tuple[Part, ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Call:
    """A call; `parameters` are in the order of tf.data.

    of: the class that it makes. made: its stages, of the values of arguments, where they are not
    what the class makes of them. anything: what else is given is not read.
    """

    name: str
    of: type[Part]
    made: Made
    parameters: tuple[Parameter, ...] = ()
    is_source: bool = False
    anything: bool = False

    @classmethod
    def of_part(cls, part: type[Part], name: str = "", **more: Any) -> Call:
        """Return the call of a class of stages, or of sources."""
        made: dict[str, Any] = {
            "made": part.made,
            "parameters": part.parameters,
            "is_source": issubclass(part, Source),
            "anything": part.takes_anything,
        }
        return cls(name=name or part.name, of=part, **made | more)

    @property
    def rest(self) -> Parameter | None:
        """The parameter that takes all that is given by place, None where there is none."""
        first = self.parameters[0] if self.parameters else None
        # zip(a, b) is read like zip([a, b]): the list may stand without its brackets.
        return first if first is not None and first.takes in ("pipelines", "whole") else None

    @property
    def main(self) -> Parameter | None:
        """The argument that stands alone, as the buffer of a shuffle; None where none does."""
        read = [p for p in self.parameters if p.name]
        return read[0] if read and self.name != "with_options" else None

    @property
    def is_offered(self) -> bool:
        """Whether it is offered where a stage is to be chosen: not what another name says too."""
        # padded_batch, rebatch and the like make stages that have calls of their own.
        return self.of.name == self.name and self.of is not Opaque and not self.anything

    @property
    def needed(self) -> list[str]:
        """The arguments that have no default."""
        of = () if self.anything else fields(self.of)
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
        # A reader takes every setting by its name; which ones exist, the table of settings checks.
        if self.of is stages.Read:
            return Parameter(name=name)
        # Names of tf.data are suggested for a typing error only; the full list has our own names.
        own = [parameter.name for parameter in self.parameters if parameter.name]
        known = [other for parameter in self.parameters for other in parameter.others]
        cure = near_or_all(name, [*own, *known] if nearest(name, [*own, *known]) else own)
        raise UsageError(f"no argument {quoted(name)}; {cure}")

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

    def stages(self, given: Iterable[tuple[str, Any]]) -> tuple[Part, ...]:
        """Return what the call makes of arguments, each by its own name ("" for what is not read).

        Raises:
            UsageError: one is there twice, is missing or is out of range; the call is named.
        """
        try:
            return self._stages(given)
        except UsageError as error:
            text = str(error)
            raise UsageError(
                # The checks of fields name the call already.
                text if text.startswith(self.name) else f"{self.name}: {text}"
            ) from None

    def _stages(self, given: Iterable[tuple[str, Any]]) -> tuple[Part, ...]:
        values: dict[str, Any] = {}
        for name, argument in given:
            if name in values:
                raise UsageError(f"{name} is there twice")
            # "" is an argument that is read over, such as a function; several may be there.
            if name:
                values[name] = argument
        missing = [name for name in self.needed if name not in values]
        if missing:
            raise UsageError(f"{missing[0]} is needed")
        return self.made(values)


Calls = Mapping[str, Call]


def name_of(part: Part, *, is_source: bool) -> str:
    """Return the name of the call that a stage, or a source, is written as."""
    return OPAQUE_SOURCE if is_source and isinstance(part, Opaque) else part.name


def name_alone(part: Part, *, is_source: bool) -> str | None:
    """Return the name that fully describes a nondeterministic part, None where it does not."""
    if not isinstance(part, Opaque) or WHY_OPEN.get(part.call) != part.reason:
        return None
    # `snapshot` alone is a stage, `load` alone a source: the name must mean the same kind again.
    call = CALLS.get(part.call)
    return part.call if (call is not None and call.is_source) is is_source else None


def call_of(part: Part, name: str) -> Call:
    """Return the call that a part is written as under a name, of tf.data or of another loader."""
    # A reader of counted elements is written as their source.
    of_tf_data = type(part).__module__ in _OF_TF_DATA
    return CALLS[name] if of_tf_data else Call.of_part(type(part))


def call_named(name: str, calls: Calls) -> Call:
    """Return the call of a name, of those that there are.

    Raises:
        UsageError: there is none; the message lists the names.
    """
    call = calls.get(name)
    if call is not None:
        return call
    if nearest(name, calls):
        raise UsageError(f"no stage {quoted(name)}; {near_or_all(name, calls)}")
    stages_, sources = (
        choices([c.name for c in calls.values() if c.is_offered and c.is_source is source], 20)
        for source in (False, True)
    )
    raise UsageError(f"no stage {quoted(name)}; stages: {stages_}; sources: {sources}")


OPAQUE_SOURCE = "opaque_source"
_OPEN_SOURCES = ("from_generator", "load", "random", "TextLineDataset")


_OF_TF_DATA = (stages.__name__, ListFiles.__module__)
_LISTED = (ListFiles, Interleave, Records)
_OWN_CALLS = (
    CACHE_IN_FILE,
    *(part.name for part in _LISTED),
    *(part.name for part in stages.ByData.__subclasses__()),
)
_SIZE, _DROP = value("size", "batch_size"), value("drop_remainder")
_SHAPES, _FILL = (value("", name, takes="code") for name in ("padded_shapes", "padding_values"))
_OTHERS = (
    Call.of_part(stages.Batch, "padded_batch", parameters=(_SIZE, _SHAPES, _FILL, _DROP)),
    Call.of_part(stages.Batch, "ragged_batch", parameters=(_SIZE, _DROP)),
    # It is the same as these two (tensorflow/core/kernels/data/rebatch_dataset_op.cc).
    Call.of_part(
        stages.Batch,
        "rebatch",
        made=lambda values: (stages.Unbatch(), stages.Batch(**values)),
        parameters=(_SIZE, _DROP),
    ),
    Call.of_part(
        stages.Values, "from_tensor_slices", parameters=(value("values", "tensors", takes="whole"),)
    ),
    Call.of_part(
        stages.Map, "enumerate", made=lambda _: (stages.Map(),), parameters=(), anything=True
    ),
    *(
        Call.of_part(
            Opaque,
            name,
            made=lambda _, name=name: (Opaque.known(name),),
            parameters=(),
            is_source=name in _OPEN_SOURCES,
            anything=True,
        )
        # Calls with a class of their own decide themselves whether their order is known.
        for name in WHY_OPEN
        if name not in _OWN_CALLS
    ),
    *map(Call.of_part, _LISTED),
    Call.of_part(Opaque, is_source=False),
    Call.of_part(Opaque, OPAQUE_SOURCE),
)
# The sources and stages of `stages.py`, in its order.
# A stable sort: sources first, each group in the order of the module. So a class in `stages.py` is
# a call without being listed anywhere.
_PARTS: list[type[Part]] = sorted(
    (
        part
        for part in vars(stages).values()
        if isinstance(part, type) and issubclass(part, Part) and "name" in vars(part)
    ),
    key=lambda part: not issubclass(part, Source),
)
CALLS: dict[str, Call] = {call.name: call for call in (*map(Call.of_part, _PARTS), *_OTHERS)}
