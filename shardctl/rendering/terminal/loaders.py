"""From how many shards a batch of each way to read comes, as bars in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.planning.quality.loaders.compare import LoaderComparison
from shardctl.rendering.terminal.bars import Bar, Series, bar_lines, beside
from shardctl.rendering.text.tables import Screen, paragraph


def loader_bars(plan: LoaderComparison, screen: Screen) -> Iterator[str]:
    """Yield a bar for each way that reads the dataset, the last one of a uniform permutation."""
    numbers = [(way.reader, way.mixing.shards) for way in plan.ways if way.mixing is not None]
    numbers.append(("uniform", plan.uniform_shards))
    yield paragraph(
        "To see: from how many shards a batch comes; the last bar is that of a uniform "
        "permutation.",
        beside(screen),
    )
    bars = [Bar(least=number, most=number, text=f"{number:.1f}") for _, number in numbers]
    series = Series(heading="shards", bars=bars)
    yield from bar_lines("reader", [name for name, _ in numbers], [series], screen)
