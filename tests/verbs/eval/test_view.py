"""An evaluation as tables, documents and rows."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.verbs.eval import view as rendering
from shardctl.verbs.eval.answer import Evaluation, evaluate


def odd(**options: Any) -> Evaluation:
    """Return the evaluation on Flax's page that hangs, or a variant of it."""
    dataset = Dataset(name="odd", splits=(Split(name="test", shard_lengths=(4097,)),))
    return evaluate(dataset, **{"batch": 64, "hosts": 8, "devices": 8, **options})


def text(evaluation: Evaluation, screen: Screen = PLAIN) -> str:
    return "".join(rendering.eval_table(evaluation, screen))


def test_hosts_come_first_then_what_becomes_of_remainders_then_advice() -> None:
    lines = text(odd(hosts=3, batch=128, devices=1)).splitlines()
    assert lines[:5] == [
        "test in odd: 4,097 examples, 3 hosts of 1 device, batches of 128 a device, 128 a host",
        "host  examples  batches  remainder  padding  padding batches",
        "   0     1,366       11         86       42                0",
        "   1     1,366       11         86       42                0",
        "   2     1,365       11         85       43                0",
    ]
    assert [line.split() for line in lines[6:12]] == [
        ["remainders", "are", "left", "ragged*", "dropped", "padded"],
        ["steps/host", "11", "10", "11"],
        ["hangs", "no", "no", "no"],
        ["examples", "lost", "0", "257", "0"],
        ["padding", "0", "0", "127"],
        ["XLA", "shapes", "3", "1", "1"],
    ]
    assert lines[12] == "* as set up here"
    assert all(line.startswith("- ") for line in lines[13:])


def test_the_way_that_is_set_up_is_marked() -> None:
    assert "padded*" in text(odd(remainder="pad"))
    assert "dropped*" in text(odd(remainder="drop"))


def test_a_hang_shows_its_step() -> None:
    row = next(line for line in text(odd()).splitlines() if line.startswith("hangs"))
    assert row.split() == ["hangs", "at", "step", "1", "no", "no"]


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("options", [{}, {"hosts": 500}, {"hosts": 4097}])
def test_tables_fit_a_screen(width: int, options: dict[str, Any]) -> None:
    assert (
        max(map(len, text(odd(**options), Screen(width=width, abridged=True)).splitlines()))
        <= width
    )


def test_a_terminal_shows_some_hosts_and_all_shows_every_one() -> None:
    short = text(odd(hosts=500), Screen(width=80, abridged=True))
    assert "\n… 492 more rows; --all shows them\n" in short
    assert sum(line.split()[:1] == ["250"] for line in _all(odd(hosts=500))) == 1


def _all(evaluation: Evaluation) -> list[str]:
    return text(evaluation).splitlines()


def test_the_document_has_the_fields_that_programs_rely_on() -> None:
    document = rendering.eval_document(odd())
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    assert document["kind"] == "eval"
    assert document["hosts"][:2] == [
        {
            "index": 0,
            "num_examples": 513,
            "num_batches": 2,
            "remainder": 1,
            "padding": 511,
            "padding_batches": 0,
        },
        {
            "index": 1,
            "num_examples": 512,
            "num_batches": 1,
            "remainder": 0,
            "padding": 0,
            "padding_batches": 1,
        },
    ]
    assert document["distinct_shapes"] == {"ragged": 2, "drop": 1, "pad": 1}
    assert document["dropped_examples"] == {"by_device_batch": 1, "by_host_batch": 1}
    assert document["hangs"] is True
    assert document["hang"] == {"step": 1, "waiting": 1, "first_waiting": 0, "finished": 7}
    assert isinstance(document["advice"], list)
    assert document["cures"][0]["change"] == "batch"
    assert rendering.eval_document(odd(remainder="pad"))["hangs"] is False


def test_json_yaml_and_csv_say_the_same() -> None:
    evaluation = odd(hosts=5)
    document = rendering.eval_document(evaluation)
    assert json.loads("".join(to_json(document))) == document
    assert yaml.safe_load("".join(to_yaml(document))) == document
    written = "".join(to_csv(rendering.eval_rows(evaluation)))
    rows = [
        {key: int(value) for key, value in row.items()}
        for row in csv.DictReader(io.StringIO(written))
    ]
    assert rows == document["hosts"]


def test_what_hangs_and_what_is_lost_is_marked_where_colour_is_shown() -> None:
    shown = text(odd(), Screen(color=True)).splitlines()
    (hangs,) = (line for line in shown if line.startswith("hangs"))
    assert hangs.count("\x1b[1;91mat step 1\x1b[0m") == 1
    (lost,) = (line for line in shown if line.startswith("examples lost"))
    assert lost.count("\x1b[1;95m") == 1  # only dropping loses any
    advice = [line for line in shown if "- " in line]
    assert advice[0].startswith("\x1b[1;91m- hangs at step 1")
    assert not any("\x1b" in line for line in advice[1:])
    sound = text(odd(hosts=1, batch=1, devices=1), Screen(color=True))
    assert "\x1b[1;9" not in sound
