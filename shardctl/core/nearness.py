"""Names that are near a name nobody knows: what its writer may have meant."""

from __future__ import annotations

from collections.abc import Iterable

_LEAST = 0.6  # of difflib's ratio, 1 for equal names
_LONGEST = 200  # characters that are compared; difflib's time grows with their square


def nearest(name: object, names: Iterable[str], limit: int = 3) -> list[str]:
    """Return the names that are near a name, the nearest first, at most `limit`.

    Case and what divides words (`-`, `_`, blanks) make no difference. Of two that are as near, the
    one that begins alike for longer comes first. A name that goes on where the other ends is near
    too, after those that are about as long.

    >>> nearest("trian", ["test", "train"])
    ['train']
    >>> nearest("ImageNet2021", ["imagenet_a", "imagenet2012", "mnist"])
    ['imagenet2012', 'imagenet_a']
    >>> nearest("--drop", ["--drop-remainder", "--help"])
    ['--drop-remainder']
    """
    import difflib  # 4 ms

    wanted = _bare(str(name))
    if not wanted:
        return []
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    found: dict[str, tuple[float, int]] = {}
    for other in names:
        bare = _bare(other)
        matcher.set_seq1(bare)
        if matcher.quick_ratio() >= _LEAST and (ratio := matcher.ratio()) >= _LEAST:
            found[other] = (-ratio, -_alike(bare, wanted))
        elif bare.startswith(wanted):
            found[other] = (0.0, 0)
    return sorted(found, key=lambda other: found[other])[:limit]


def nearest_first(name: object, names: Iterable[str]) -> list[str]:
    """Return all names, each once, the nearest to a name before the others.

    >>> nearest_first("trian", ["test", "train"]), nearest_first("x", ["test", "train"])
    (['train', 'test'], ['test', 'train'])
    """
    names = list(dict.fromkeys(names))
    near = nearest(name, names)
    return [*near, *(other for other in names if other not in near)]


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return the question that names what is nearest, "" where nothing is near.

    >>> did_you_mean("shufle_seed", ["cycle", "shuffle_seed"])
    'did you mean shuffle_seed? '
    """
    near = nearest(name, names, 1)
    return f"did you mean {near[0]}? " if near else ""


def _alike(name: str, other: str) -> int:
    """Return how many characters two names begin with alike."""
    pairs = zip(name, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(name), len(other)))


def _bare(name: str) -> str:
    return "".join(char for char in name[:_LONGEST].casefold() if char not in "-_ ")
