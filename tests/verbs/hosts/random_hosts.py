"""Random datasets and numbers of hosts, on screens of any width."""

from __future__ import annotations

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import Screen
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.hosts.answer import HostsPlan, hosts

LENGTHS = st.one_of(
    st.lists(st.sampled_from((0, 1, 2, 7, 100, 10**6)), min_size=1, max_size=40),
    st.lists(st.integers(0, 10**15), min_size=1, max_size=20),
    st.tuples(st.integers(1, 300), st.integers(1, 300)).map(lambda one: [one[0]] * one[1]),
)
NUMS_HOSTS = st.one_of(
    st.integers(1, 30), st.integers(1, 400), st.sampled_from((10_000, 999_999, 1_000_000))
)
SCREENS = st.builds(
    Screen, width=st.one_of(st.none(), st.integers(20, 120)), pictures=st.just(value=True)
)


@st.composite
def splits(draw: st.DrawFn, name: str = "train") -> Split:
    """Return a split whose files are known, or not, or some of which are missing."""
    lengths = draw(LENGTHS)
    sizes = draw(
        st.one_of(
            st.none(),
            st.lists(
                st.one_of(st.none(), st.integers(0, 2**45)),
                min_size=len(lengths),
                max_size=len(lengths),
            ),
        )
    )
    return Split(
        name=name, shard_lengths=lengths, shard_bytes=None if sizes is None else tuple(sizes)
    )


@st.composite
def plans(draw: st.DrawFn, num_hosts: st.SearchStrategy[int | list[int]]) -> HostsPlan:
    """Return what hosts read of a random dataset, with batches or without."""
    batch = draw(st.one_of(st.none(), st.integers(1, 300)))
    dataset = Dataset(name="random", splits=(draw(splits()),))
    return hosts(dataset, "train", ReadSettings(batch=batch), hosts=draw(num_hosts))
