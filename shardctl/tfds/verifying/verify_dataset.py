"""`verify_dataset`: a user's own `tf.data.Dataset`, run and compared with its prediction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.by_name import provided
from shardctl.base.progress import WATCHING, Progress, Watch, watched_by
from shardctl.base.text import choices
from shardctl.base.tfds_rules import Loop
from shardctl.errors import UsageError
from shardctl.order.order import Order
from shardctl.settings.read_settings import settings_in_force
from shardctl.tfds.imports import tensorflow, versions
from shardctl.tfds.inspecting.inspect import Inspected, inspected, the_dataset
from shardctl.tfds.inspecting.script import ScriptFunction, chosen
from shardctl.tfds.inspecting.watch import Lines, Returned
from shardctl.tfds.training.edited_graph import NotRebuildable
from shardctl.tfds.training.own_elements import OwnElements
from shardctl.tfds.verifying.real_files import fitted_epoch, reason_of
from shardctl.verbs.inspect.answer import Inspection
from shardctl.verbs.verify import answer as verdict
from shardctl.verbs.verify.verify_files import check_files_read


@checked
def verify_dataset(
    dataset: Inspected,
    *,
    pass_index: int = 0,
    loop: Loop = "python",
    take: verdict.Take = None,
    watch: Watch | None = None,
) -> verdict.Verification:
    """Iterate a pipeline of your own, and compare what it yields with what is predicted.

    The very object is iterated, and its elements are compared, in every component, with what its
    own maps and batches make of the predicted examples, read from the files. So
    nothing is taken for granted of what maps do to an example. Examples that are alike count as
    equal; the notes say how many are distinct.

    Args:
        dataset: a `tf.data.Dataset` or an object of another loader that was not iterated yet, or a
            function that makes one.
        pass_index: which iteration of it is compared, from 0; the earlier ones are read whole.
        loop: the training loop; "keras-fit" trains a model that does nothing.
        take: how many examples are compared, -1 or "all" for all; None is 100,000.
        watch: is called as the work proceeds.

    Returns:
        A Verification: `equal`, or the first example that differs.

    Raises:
        UnpredictableOrderError: the order is nondeterministic; the stage is named.
        UsageError: no files of a dataset are read, maps draw random numbers, or elements cannot be
            made of single examples.
        MissingDependencyError: TensorFlow is not installed.
    """
    lines, wanted = Lines(), "all" if take == -1 else take
    found = the_dataset(dataset, lines)
    with watched_by(watch):
        return _verified(found, lines, pass_index=pass_index, loop=loop, take=wanted)


def verify_script(
    script: ScriptFunction,
    *,
    only: str | None = None,
    index: str | None = None,
    pass_index: int = 0,
    loop: Loop = "python",
    take: verdict.Take = None,
) -> verdict.Verification:
    """Compare a dataset that a function of a script returns or iterates; see `verify_dataset`.

    Raises:
        UsageError: the function fails, or returns no dataset, or several of which none is chosen.
    """
    lines = Lines()
    datasets = chosen(script, lines, only=only, index=index)
    if len(datasets) > 1:
        raise UsageError(
            f"{script} returns several datasets, and one is verified at a time; choose with "
            f"--only NAME: {choices(list(datasets))}"
        )
    (found,) = datasets.values()
    return _verified(found, lines, pass_index=pass_index, loop=loop, take=take)


def _verified(
    found: Returned, lines: Lines, *, pass_index: int, loop: Loop, take: verdict.Take
) -> verdict.Verification:
    if found.read is not None:
        compared: verdict.Verification = provided("verify_object")(
            found.dataset, found.read, pass_index=pass_index, take=take
        )
        return compared
    inspection = inspected(found, lines=lines, loop=loop)
    inspection.check_predictable()
    if found.iterated is not None and found.iterated.taken:
        raise UsageError(
            f"{found.iterated} has iterated the dataset before it can be compared; let the "
            "function return the dataset itself"
        )
    return verify_inspected(found.dataset, inspection, pass_index=pass_index, take=take)


def verify_inspected(
    dataset: Any, inspection: Inspection, *, pass_index: int, take: verdict.Take
) -> verdict.Verification:
    """Compare a dataset object that was inspected; see `verify_dataset`."""
    # From cheap to costly; nothing is read before all is known to be comparable.
    verdict.check_take(take)
    if pass_index < 0:
        raise UsageError(f"pass_index={pass_index}: passes count from 0")
    inspection.check_predictable()
    if inspection.dataset is None:
        raise UsageError("the pipeline reads no files of a dataset, so no example has a name")
    planned = inspection.order(pass_index)
    order, settings = planned.order, inspection.settings
    own = OwnElements(dataset=dataset, elements=order)
    total = None if order.is_endless else order.num_examples
    # An endless order has no "all"; the default applies.
    wanted = verdict.BUDGETS["files"] if take is None or (take == "all" and total is None) else take
    stop = order.num_steps
    # `stop` is in elements. The last example that is wanted may be inside one, which is then
    # compared whole.
    if isinstance(wanted, int) and (total is None or wanted < total):
        stop = int(order.steps_of([wanted - 1])[0][0]) + 1
    assert stop is not None
    if not stop:
        raise UsageError("nothing to verify: the pipeline yields no elements")
    checks = check_files_read(order.reads, WATCHING.get())
    comparison = _Comparison(own=own, order=order, stop=stop)
    comparison.run(pass_index, "keras-fit" if settings.loop == "keras-fit" else "python")
    return verdict.Verification(
        dataset=order.dataset,
        spec=planned.spec,
        pipeline=settings_in_force(order.settings, ordered=order.dataset.ordered),
        num_examples=total,
        read="files",
        windows=(verdict.Window(start=0, stop=comparison.num_done, read="files"),),
        first_difference=comparison.difference,
        num_files=checks.num_files,
        files=checks.findings,
        versions=versions(),
        assumptions=inspection.assumptions,
        notes=(*comparison.notes, *checks.notes),
        warnings=planned.warnings,
    )


@dataclass(kw_only=True)
class _Comparison:
    """The first `stop` elements of a pass beside those that are predicted."""

    own: OwnElements
    order: Order
    stop: int
    notes: list[str] = field(init=False, default_factory=list)
    difference: verdict.FirstDifference | None = field(init=False, default=None)
    num_done: int = field(init=False, default=0)

    def run(self, pass_index: int, loop: Loop) -> None:
        """Compare them, and note what was compared."""
        try:
            expected = self.own.made().take(self.stop)
        except NotRebuildable as why:
            raise UsageError(
                f"{why}, so its elements cannot be made of the predicted examples to be compared; "
                "shardctl verify with the same stages compares their ids"
            ) from why
        # After `made`, whose errors say more about a pipeline.
        if self.own.random_ops:
            ops = choices(sorted(self.own.random_ops), 4)
            raise UsageError(
                f"its maps draw random numbers ({ops}), so what they make of an example is not "
                "known; let the function leave them out"
            )
        # Earlier passes count as well: they are read, too.
        progress = Progress("elements", self.stop * (pass_index + 1), per_second=10_000)
        distinct: set[int] = set()
        reason: list[str] = []
        # None where the end is compared too: `take` would hide an element too many.
        stop = None if self.stop == self.order.num_steps else self.stop
        found = _found(self.own.dataset, pass_index, loop, stop, reason)
        # zip_longest: the shorter side yields None, which is a difference.
        for step, (real, predicted) in enumerate(zip_longest(found, expected)):
            progress.advance(1)
            codes = [] if predicted is None else self._codes(step)
            one, two = parts_of(real), parts_of(predicted)
            # All components must be equal, bit by bit.
            if real is None or predicted is None or key(one) != key(two):
                self._differs(rows_of(one, len(codes)), rows_of(two, len(codes)), codes, reason)
                break
            # Hashes instead of examples: only their number is reported.
            distinct.update(map(hash, rows_of(two, len(codes))))
            self.num_done += len(codes)
        self.notes.append(
            "elements were compared with what the pipeline's own maps make of the predicted "
            f"examples: {len(distinct):,} are distinct"
        )

    def _codes(self, step: int) -> list[int]:
        codes: list[int] = self.order.examples_in_steps(step, step + 1)[1].tolist()
        return codes

    def _differs(
        self, ones: list[Key], twos: list[Key], codes: list[int], reason: list[str]
    ) -> None:
        """Note where an element leaves the predicted one; None stands for the end of either."""
        pairs = enumerate(zip_longest(ones, twos))
        # The first row that differs; 0 where the elements differ as a whole.
        row = next((row for row, (one, two) in pairs if one != two), 0)
        names, here = self.order.codes, codes[row : row + 1] if row < len(twos) else []
        found = "another example" if row < len(ones) else None
        self.difference = verdict.FirstDifference(
            position=self.num_done + row,
            expected=names.ids(np.array(here))[0] if here else None,
            found=found,
            expected_tfds_id=names.tfds_ids(here)[0] if here else None,
            found_tfds_id=found,
            reason=reason[0] if reason and found is None else None,
        )


def _found(
    dataset: Any, pass_index: int, loop: Loop, stop: int | None, reason: list[str]
) -> Iterator[Any]:
    """Yield the elements of a pass of the very object, up to `stop` (None: to its end)."""
    if loop == "keras-fit" and pass_index:
        # Keras iterates by itself, so its epochs are recorded.
        yield from fitted_epoch(dataset, pass_index)[:stop]
        return
    # Earlier passes are read whole, for the seeds they use up.
    for _ in range(pass_index):
        for _ in dataset:
            pass
    try:
        # Not `take`: the object is iterated as it is.
        for step, element in enumerate(dataset):
            if step == stop:
                return
            yield element
    except tensorflow().errors.OpError as error:
        reason.append(reason_of(error))


# Real elements, compared component by component, and the examples that they are made of.

Key = tuple[Any, ...]  # what it is equal by: kind, shape and bytes of each component


def parts_of(element: Any) -> list[Any]:
    """Return the components of an element as TensorFlow yields it, eager; none of None."""
    nest = tensorflow().nest
    # Ragged and sparse tensors count by their parts.
    parts = [] if element is None else nest.flatten(element, expand_composites=True)
    return [np.asarray(part.numpy() if hasattr(part, "numpy") else part) for part in parts]


def key(parts: Iterable[Any]) -> Key:
    """Return what two elements, or rows of them, are alike by."""
    return tuple(
        # Objects (texts) have no bytes to compare, so their values are.
        (part.shape, tuple(part.ravel().tolist()))
        if part.dtype == object
        # Bytes, so that NaN equals NaN and -0.0 differs from 0.0.
        else (part.dtype.str, part.shape, part.tobytes())
        for part in map(np.asarray, parts)
    )


def rows_of(parts: list[Any], width: int) -> list[Key]:
    """Return the keys of the examples of a batch of `width`, or of the element as one."""
    # -1 for scalars. All components must have the same number of rows.
    lengths = {len(part) if part.ndim else -1 for part in parts}
    if len(lengths) == 1 and (lengths == {width} or (width > 1 and min(lengths) > 0)):
        return [key(part[row] for part in parts) for row in range(lengths.pop())]
    return [key(parts)] if parts else []
