"""Nodes by hand: what each hands out and refuses, how far it reads, what threads leave open."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration import combinations as directed
from shardctl.iteration import iteration as module
from shardctl.iteration import repeat as repeating
from shardctl.iteration import shuffle as shuffling
from shardctl.iteration.build import iteration_of_pass
from shardctl.iteration.combinations import Chosen, Directed, Zip, certain_left
from shardctl.iteration.iteration import EVERYTHING, INFINITE, UNKNOWN, Iteration, Node, Source
from shardctl.iteration.regrouped import Kept, Regrouped
from shardctl.iteration.repeat import Repeat
from shardctl.iteration.selection import Asserted, Cache, Strided
from shardctl.iteration.shuffle import Shuffle
from shardctl.tfdata import mixture
from shardctl.tfdata.shuffle_buffer import shuffle_permutation
from shardctl.tfdata.shuffle_seeds import KernelSeeds, SeedGenerator, shuffle_kernel_seeds
from tests.golden import assert_answers, assert_evaluated
from tests.iteration.elements import Watched, check_lookups, elements_of, node_of, pass_of
from tests.pipelines.real_pipelines import passes
from tests.strategies import error_line
from tests.tfdata.shuffle_oracles import iterator_seeds

GOLDEN = Path(__file__).parent / "golden"


def shuffle_of(
    child: Node, buffer: int, *, reshuffle: bool = True, count: int | None = 1
) -> Shuffle:
    kernel = shuffle_kernel_seeds(7, None)
    generator = SeedGenerator(kernel, reshuffle, stage=f"shuffle({buffer})")
    return Shuffle(child, buffer, generator, count)


def permutation(length: int, buffer: int, pair: int) -> list[int]:
    order: list[int] = shuffle_permutation(
        length, buffer, iterator_seeds(7, None, True, pair)
    ).tolist()
    return order


def shuffled(length: int, buffer: int, *pairs: int) -> list[int]:
    return [code for pair in pairs for code in permutation(length, buffer, pair)]


BATCHES = [[0, 1, 2], [3, 4, 5], [6]]

SHUFFLED: list[tuple[str, list[Any]]] = [
    *(
        (f"range(8) | shuffle({buffer}, seed=7) | repeat({count})", shuffled(8, buffer, *pairs))
        for buffer in (1, 3, 8, 100)
        for count, pairs in ((1, (0,)), (5, range(5)))
    ),
    ("range(8) | shuffle(-2, seed=7) | repeat(2)", shuffled(8, 8, 0, 1)),
    ("values([]) | shuffle(3, seed=7) | repeat", []),
    (
        "range(8) | shuffle(3, seed=7, reshuffle_each_iteration=false) | repeat(2)",
        shuffle_permutation(8, 3, KernelSeeds(seed=87654321, seed2=7)).tolist() * 2,
    ),
    (
        "range(7) | batch(3) | repeat(3) | shuffle(4, seed=7)",
        [(BATCHES * 3)[index] for index in permutation(9, 4, 0)],
    ),
]


def elements(text: str) -> list[list[int]]:
    lists = check_lookups(pass_of(text))
    iteration = node_of(text).iterate()  # what is not pulled is not found
    half = iteration.pull(len(lists) // 2)
    assert check_lookups(iteration) == lists[:half], text
    assert (iteration.pull(EVERYTHING), iteration.ended) == (len(lists) - half, True), text
    return lists


# In pieces of any size, and with any number of codes kept of what was read of late.
@pytest.mark.parametrize("piece", [1, 2, 40, 1 << 16])
def test_elements_are_those_listed_by_hand(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (module, repeating):
        monkeypatch.setattr(each, "PIECE", piece)
    monkeypatch.setattr(shuffling, "_MAX_KEPT", piece)
    assert_answers(GOLDEN / "elements.txt", elements)
    for text, expected in SHUFFLED:
        assert elements(text) == [one if isinstance(one, list) else [one] for one in expected], text


# How far the input is read after each element: counted in TensorFlow 2.21, by a map that counts.
def test_how_far_the_input_is_read() -> None:
    def how_far(text: str, length: int, pulls: int) -> list[int]:
        source, found, seen = Watched(length), list[int](), list[list[int]]()
        iteration = node_of(text, read=source).iterate()
        for _ in range(pulls):
            iteration.pull(1)
            found.append(source.num_read)
            seen.append(iteration.examples(np.arange(iteration.pulled)).tolist())
        # What is yielded does not change as more is read.
        assert [seen[-1][: len(one)] for one in seen] == seen
        assert bool(source.made) == (text != "take(0)")
        return found

    assert_evaluated(globals(), "how_far", how_far)


# Which pairs of seeds the epochs of the second pass are shuffled with (TFDATA C2, C3, C6).
# A fused repeat takes a pair an epoch, another one a pair more. Keras makes an iterator that it
# does not read; where it knows no length it makes none.
def test_the_second_pass_goes_on_with_the_pairs() -> None:
    def second_pass(text: str, loop: Any = "python") -> list[int]:
        found = elements_of(pass_of(f"range(9) | shuffle(9, seed=7) | {text}", 1, loop=loop))
        epochs = np.array([code for element in found for code in element]).reshape(-1, 9)
        pairs = [permutation(9, 9, pair) for pair in range(8)]
        return [pairs.index(epoch.tolist()) for epoch in epochs]

    assert_evaluated(globals(), "second_pass", second_pass)


def test_iterators_take_their_pair_when_they_are_made() -> None:
    below = shuffle_of(Source(range(4)), 9)
    node = shuffle_of(below, 9)
    iteration: Iteration = node.iterate()
    assert (node.generator.num_taken, below.generator.num_taken) == (1, 0)
    iteration.pull(1)
    assert below.generator.num_taken == 1
    for count in (1, 3):  # a repeat makes one more when it is asked for the end
        below = shuffle_of(Source(range(4)), 9)
        iteration = Repeat(Strided(below), count).iterate()
        assert (iteration.pull(4 * count), below.generator.num_taken) == (4 * count, count)
        assert (iteration.pull(1), below.generator.num_taken) == (0, count + 1)
    # Of a full cache no iterator is made below; batches of an epoch are not read too early.
    below = shuffle_of(Source(range(4)), 9)
    cache = Cache(below)
    for _ in range(2):
        assert cache.iterate().pull(9) == 4
    assert (below.generator.num_taken, cache.state) == (1, 1)
    source, taken = Watched(5), list[int]()
    iteration = node_of(
        "batch(2) | shuffle(2, seed=7) | map | repeat | unbatch", read=source
    ).iterate()
    for _ in range(11):
        iteration.pull(1)
        taken.append(len(source.made))
    assert taken == [1] * 5 + [2] * 5 + [3]


# A cache is full with as many as TensorFlow knows of; where that is unknown it must see the end
# (tensorflow/core/kernels/data/cache_dataset_ops.cc).
def test_a_cache_is_full_with_as_many_as_tensorflow_knows_of() -> None:
    def fills(text: str, cardinality: int) -> int:
        cache = Cache(shuffle_of(node_of(text, read=Watched(6, cardinality=cardinality)), 9))
        assert (cache.iterate().pull(5), cache.state) == (5, 0)  # a partial pass is not kept
        cache.iterate().pull(6)
        state = cache.state
        passes = [check_lookups(iteration) for iteration in (pulled(cache), pulled(cache))]
        assert (len(passes[0]), cache.state, passes[0] == passes[1]) == (6, 1, True)
        return state

    assert_evaluated(globals(), "full_caches", fills)


def pulled(node: Node) -> Any:
    iteration = node.iterate()
    iteration.pull(EVERYTHING)
    return iteration


# As ds.cardinality() of TensorFlow 2.21 says it, and whether it never ends.
def test_what_is_known_of_the_number_of_elements() -> None:
    def known(text: str) -> str:
        node = node_of(text)
        if node.is_counted and node.num_elements >= 0:
            assert len(elements_of(pass_of(text))) == node.num_elements
        named: Any = {UNKNOWN: "unknown", INFINITE: "infinite"}
        said = named.get(node.cardinality, node.cardinality)
        return f"{said}{', never ends' if node.never_ends else ''}"

    assert_evaluated(globals(), "cardinalities", known)


def test_what_has_no_order_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chosen, "most_in_vain", 1 << 17)
    assert_answers(GOLDEN / "refused.txt", pass_of)


# What threads that read ahead leave open: the first pass that is refused, and by which stage.
# A prefetch that is cancelled below a repeat may say its end: of 150 passes 1 to 4 did. What
# threads read beyond a cut refuses nothing before it; a warm start reads before it is asked.
def test_what_threads_leave_open() -> None:
    def left_open(text: str) -> str:
        for index in range(3):
            refused = error_line(partial(pass_of, f"range(9) | {text}", index))
            if refused is not None:
                return f"pass {index}: {refused}"
        return "nothing"

    assert_answers(GOLDEN / "left_open.txt", left_open)


def test_an_endless_repeat_that_ends_is_begun_anew_by_threads_that_read_on() -> None:
    # Such a pipeline's second pass had 25 examples in most runs of TensorFlow, and none in some.
    text = (
        "sample_from_datasets([range(9), range(0)], weights=[0.7, 0.3], seed=1, "
        "stop_on_empty_dataset=true, rerandomize_each_iteration=true) "
        "| repeat | map | batch(5, drop_remainder=true) | map | take(16)"
    )
    pass_of(text)
    with pytest.raises(UnpredictableOrderError):
        pass_of(text, 1)


# One dataset object used more than once: exact where it is certain, refused elsewhere.


def used(more: str, stages: str = "shuffle(20, seed=5)") -> str:
    return f"shared(ds, range(20) | {stages}){more}"


def test_two_objects_made_alike_are_not_one() -> None:
    for text, is_same in (("range(20) | shuffle(20, seed=5)", True), (used(""), False)):
        one, other = pass_of(f"zip([{text}, {text}])").examples(np.arange(20)).reshape(20, 2).T
        assert (one.tolist() == other.tolist()) == is_same


@pytest.mark.parametrize(
    ("inputs", "first", "rule"),
    [
        # Which of two fills a cache first, or takes its seeds, TensorFlow's threads decide.
        ((used("", "shuffle(9, seed=5) | cache"), used(" | map", "shuffle(9, seed=5) | cache")), 1,
         r"cache\(\) is filled depends on timing"),
        ((used(" | map | repeat(3) | map"), used(" | map | repeat(3) | map")), 0, "shuffle"),
    ],
)  # fmt: skip
def test_what_threads_change_by_turns_is_open(
    inputs: tuple[str, ...], first: int, rule: str
) -> None:
    for index in range(first + 1):
        if index < first:
            pass_of(f"zip([{', '.join(inputs)}])", index)
        else:
            with pytest.raises(UnpredictableOrderError, match=rule):
                pass_of(f"zip([{', '.join(inputs)}])", index)


@pytest.mark.parametrize("lengths", [(3, 5, 4), (5, 3, 4), (4, 4, 4), (3, 3, 5), (0, 3, 3)])
def test_at_the_end_of_zip_all_inputs_have_been_asked_as_often(lengths: tuple[int, ...]) -> None:
    # Seen with generators that count: TensorFlow asks each one once more than it has tuples.
    iteration = Zip([Source(range(length)) for length in lengths]).iterate()
    assert iteration.pull(100) == min(lengths)
    read = [source.pulled for source in iteration.sources]
    assert read == [min(min(lengths) + 1, length) for length in lengths]


def test_what_is_left_of_a_repeat_of_perhaps_nothing_is_not_certain() -> None:
    for length, least in ((3, 10**12), (0, 0)):
        node = Repeat(Source(range(length)), None)
        assert certain_left(node, node.iterate()) >= least
    for stop in ("true", "false"):
        text = f"sample_from_datasets([range(3), range(99)], seed=1, stop_on_empty_dataset={stop})"
        assert pass_of(f"zip([{text}, range(50)])").pulled == min(50, pass_of(text).pulled)
    with pytest.raises(UsageError, match="of a dataset without end never fills its buffer"):
        shuffle_of(Repeat(Source(range(8)), None), WHOLE_DATASET)
    kept = Kept(values=passes)
    assert not Asserted(Regrouped(Source(range(8)), kept), 8).is_counted


# Long passes are a matter of counts and checkpoints.


def directed_of(text: str) -> Any:
    node = node_of(text)
    while not isinstance(node, Directed):
        (node,) = node.inputs
    return node.iterate()


def test_an_iterator_stopped_at_a_count_has_read_of_each_input_what_came_of_it() -> None:
    inputs = ", ".join(f"values({[*range(100 * i, 100 * i + 30 + i)]}) | repeat" for i in range(4))
    text = f"sample_from_datasets([{inputs}], weights=[4, 3, 2, 1], seed=1)"
    whole = directed_of(text)
    whole.pull(9_000)
    for count in (0, 1, 77, 5_000, 8_999):
        stopped = directed_of(text)
        assert stopped.pull(count) == count
        handed_out = whole.examples(np.arange(count)) // 100
        consumed = [one.pulled for one in stopped.sources]
        assert consumed == np.bincount(handed_out, minlength=4).tolist()
    assert list(Chosen(Source([2, 0, 2, 9, -1])).ever(3)) == [0, 2]


def test_billions_of_elements_are_counted_at_once() -> None:
    inputs = ", ".join(f"values({[*range(10 * i, 10 * i + 7)]}) | repeat" for i in range(3))
    chosen = directed_of(f"choose_from_datasets([{inputs}], choices=range(3) | repeat)")
    assert chosen.pull(10**6) == 10**6
    found = chosen.examples(np.array([0, 1, 2, 3, 10**6 - 1])).tolist()
    assert found == [0, 10, 20, 1, (10**6 - 1) // 3 % 7]
    iteration = node_of("zip([range(7) | repeat, range(10) | repeat])").iterate()
    assert iteration.pull(10**12) == 10**12
    assert iteration.examples(np.array([10**12 - 1])).tolist() == [(10**12 - 1) % 7, 9]
    shuffle = "range(1000000000) | shuffle(10000, seed=1)"
    batched = pass_of(f"{shuffle} | batch(64) | repeat(20) | unbatch | batch(1000)")
    assert batched.num_examples == 20 * 10**9
    inner = pass_of(f"{shuffle} | repeat(20)")
    assert batched.codes_at(np.array([5])).tolist() == inner.codes_at(np.array([5])).tolist()


def test_long_inputs_of_a_filter_are_found_over_many_checkpoints() -> None:
    kept = Kept(values=lambda codes: codes % 7 == 3)
    iteration = Regrouped(Source(range(300_000)), kept).iterate()
    assert iteration.pull(10) == 10
    expected = np.arange(3, 300_000, 7)
    assert iteration.pull(10**9) == len(expected) - 10
    elements = np.random.default_rng(0).integers(0, len(expected), 200)
    assert iteration.examples(elements).tolist() == expected[elements].tolist()
    wanted = np.arange(200_000, 200_050)
    query, found = iteration.elements_of(wanted)
    assert (wanted[query] == expected[found]).all()
    assert len(found) == np.isin(wanted, expected).sum()


def test_a_mixture_over_many_checkpoints_is_that_without(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = ", ".join(
        f"values({[*range(first, first + size)]}) | shuffle({buffer}, seed={first})"
        for first, size, buffer in ((0, 2400, 100), (2400, 2000, 1), (4400, 1600, 1000))
    )
    text = f"sample_from_datasets([{inputs}], weights=[0.5, 0.3, 0.2], seed=5)"
    whole = elements_of(pass_of(text))
    for each in (mixture, directed):
        monkeypatch.setattr(each, "BLOCK", 1 << 10)
    assert check_lookups(pass_of(text)) == whole


# Numbers of readings: each repetition of a source counts on, and codes stay what they are.


@pytest.mark.parametrize(
    "text",
    [
        "repeat(3)",
        "shuffle(3, seed=1) | repeat(3) | batch(2)",
        "shuffle(3, seed=1) | map | repeat(3)",
        "cache | shuffle(4, seed=1) | repeat(3)",
        "repeat(2) | map | shuffle(3, seed=1) | repeat(2)",
        "repeat(3) | shuffle(5, seed=1) | batch(4) | unbatch",
        "batch(2) | repeat(3) | shard(1, 0)",
    ],
)
def test_each_example_is_once_in_each_reading(text: str) -> None:
    iteration = pass_of(f"range(5) | {text}")
    every = np.arange(iteration.num_examples)
    codes, numbers = iteration.codes_at(every), iteration.readings_at(every)
    seen = Counter(zip(codes.tolist(), numbers.tolist(), strict=True))
    assert set(seen.values()) == {1}
    assert len(seen) == len(every) == 5 * iteration.num_readings
    assert set(numbers.tolist()) == set(range(iteration.num_readings))


def test_inputs_count_for_themselves_and_what_follows_is_no_repetition() -> None:
    inputs = "[range(2) | repeat, range(9)]"
    iteration = pass_of(f"choose_from_datasets({inputs}, choices=range(2) | repeat(4))")
    assert iteration.codes_at(np.arange(8)).tolist() == [0, 0, 1, 1, 0, 2, 1, 3]
    assert iteration.readings_at(np.arange(8)).tolist() == [0, 0, 0, 0, 1, 0, 1, 0]
    assert iteration.num_readings == 2
    iteration = pass_of("range(3) | concatenate(range(2)) | repeat(2)")
    assert iteration.readings_at(np.arange(10)).tolist() == [0] * 5 + [1] * 5


# Passes.


def test_keras_drops_an_iterator_where_as_many_come_as_were_said() -> None:
    for cardinality, taken in ((5, 2), (6, 1)):
        node = shuffle_of(Watched(5, cardinality=cardinality), 3)
        iteration_of_pass(node, 1, loop="keras-fit")
        assert node.generator.num_taken == taken + 1
    # Three batches of 5 or 2 rows have 12 or 9. Keras takes the steps of its first pass, and the
    # one that found the end, for those of all others: seen in Keras 3.15.
    text = "range(7) | batch(5) | shuffle(10, seed=2) | repeat | take(3) | unbatch"
    lengths = [pass_of(text, index, loop="keras-fit").pulled for index in range(5)]
    assert lengths == [9, 10, 10, 9, 9]
    assert [pass_of(text, index).pulled for index in range(2)] == [9, 12]


def test_passes_that_are_not_there_are_refused_and_late_ones_cost_nothing() -> None:
    with pytest.raises(UsageError, match="pass -1"):
        iteration_of_pass(node_of("range(9) | shuffle(9, seed=7)"), -1)
    endless = node_of("range(9) | shuffle(9, seed=7) | repeat")
    assert iteration_of_pass(endless).pull(1000) == 1000
    with pytest.raises(UsageError, match="repeats forever"):
        iteration_of_pass(endless, 1)
    text = "range(9) | shuffle(3, seed=1, reshuffle_each_iteration=false) | batch(2)"
    assert iteration_of_pass(node_of(text), 10**15).pull(9) == 5


def test_batches_of_several_sizes_are_as_long_as_the_largest_at_most() -> None:
    nodes = [node_of("batch(4, drop_remainder=true)"), node_of("batch(3, drop_remainder=true)")]
    assert [node.shape[0].is_exact for node in nodes] == [True, True]
    assert module.shape_of_any(nodes) == (module.Axis(4, is_exact=False),)
    assert module.shape_of_any(nodes[:1]) == nodes[0].shape
