"""Pictures of any answer on a sheet: no line leaves it, and the file is XML."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.drawers import pictures_of
from shardctl.draw.picture import SHEET, lines_of
from shardctl.draw.svg import svg_file
from shardctl.draw.tables import display_width
from shardctl.verbs.layout.answer import layout
from tests.cases import check_cases, few_or_many
from tests.draw.pictured import evaluations, simulations
from tests.verbs.hosts.random_hosts import NUMS_HOSTS, plans, splits

SWEEPS = st.lists(NUMS_HOSTS, min_size=1, max_size=30)
LAYOUTS = st.lists(splits(), min_size=1, max_size=3).map(
    lambda found: layout(
        Dataset(
            name="toy",
            splits=tuple(
                Split(name=f"{split.name}{n}", shard_lengths=split.shard_lengths)
                for n, split in enumerate(found)
            ),
        )
    )
)
ANSWERS = st.one_of(plans(NUMS_HOSTS), plans(SWEEPS), LAYOUTS, evaluations(), simulations())


@few_or_many(20, 200)
def test_no_line_leaves_a_sheet_and_every_file_is_xml(num_cases: int) -> None:
    def check(answer: object) -> None:
        pictures = pictures_of(answer)
        assert pictures
        ElementTree.fromstring("".join(svg_file(pictures)).encode())
        for picture in pictures:
            assert picture.title
            assert picture.caption
            for mark in picture.marks:
                for line in lines_of(mark, SHEET.width):
                    text = "".join(span.text for span in line).rstrip()
                    assert display_width(text) <= SHEET.width, text

    check_cases(ANSWERS, check, num_cases)


def test_a_split_without_shards_is_drawn() -> None:
    empty = Dataset(name="toy", splits=(Split(name="train", shard_lengths=()),))
    (picture,) = pictures_of(layout(empty))
    assert "0 shards" in picture.title
    assert "</svg>" in "".join(svg_file([picture]))
