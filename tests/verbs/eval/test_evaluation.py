"""An evaluation as a value; what it counts is tested with `evaluate`, by hand and by tf.data."""

from __future__ import annotations

from shardctl.verbs.eval.answer import REMAINDERS, evaluate


def test_it_is_equal_to_another_of_the_same_figures() -> None:
    one, same, other = (evaluate("mnist", batch=512, hosts=hosts) for hosts in (6, 6, 7))
    assert one == same
    assert one != other


def test_every_way_with_remainders_has_its_steps() -> None:
    found = evaluate("mnist", batch=512, hosts=3)  # 3,334, 3,333 and 3,333 examples
    assert {way: found.num_steps(way).tolist() for way in REMAINDERS} == {
        "ragged": [7, 7, 7],
        "drop": [6, 6, 6],
        "pad": [7, 7, 7],
    }


def test_its_repr_says_what_goes_wrong() -> None:
    text = repr(evaluate("mnist", "test[:10]", batch=2, hosts=4))
    assert text == (
        "<Evaluation mnist:3.0.1 test[:10]: 4 hosts, batches of 1 x 2, 0 of 10 examples lost, "
        "hangs at step 1>"
    )
