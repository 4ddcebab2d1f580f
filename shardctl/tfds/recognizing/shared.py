"""Dataset objects that a script uses more than once; a graph has a copy of them for each use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from shardctl.tfds.recognizing.graph import NoConstantError, Operation

_SHUFFLES = ("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
_CACHES = ("CacheDataset", "CacheDatasetV2")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def shared_objects(root: Operation) -> Mapping[str, str]:
    """Return the objects that are used by several others, by their names, each with a label.

    Only those count whose iterators know of each other: something of them reshuffles, or is
    cached. What is used twice by way of an object that is used twice is no use of its own.
    """
    users: dict[str, set[tuple[object, int]]] = defaultdict(set)
    with_state: dict[str, bool] = {}
    for operation in _all(root):
        user = operation.object_name or id(operation)
        for place, used in enumerate(operation.inputs):
            if used.object_name is not None:
                users[used.object_name].add((user, place))
                with_state.setdefault(used.object_name, _has_state(used))
    names = [name for name, uses in users.items() if len(uses) > 1 and with_state[name]]
    return {name: _label(index) for index, name in enumerate(names)}


def _label(index: int) -> str:
    rounds, letter = divmod(index, len(_LETTERS))
    return _LETTERS[letter] + (str(rounds) if rounds else "")


def _all(root: Operation) -> Iterator[Operation]:
    waiting, seen = [root], set()
    while waiting:
        operation = waiting.pop()
        if id(operation) not in seen:
            seen.add(id(operation))
            yield operation
            waiting += operation.inputs


def _has_state(root: Operation) -> bool:
    return any(
        operation.op in _CACHES or (operation.op in _SHUFFLES and _reshuffles(operation))
        for operation in _all(root)
    )


def _reshuffles(operation: Operation) -> bool:
    try:
        one = operation.number("buffer_size") == 1
    except NoConstantError:
        one = False
    return operation.flag("reshuffle_each_iteration") and not one
