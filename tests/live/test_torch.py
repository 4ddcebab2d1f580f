"""PyTorch's loaders, run beside the rules of their orders."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS, library_of
from tests.cases import FUZZ, add_cases, counted, random_of_a_fuzz_run
from tests.loaders.agreement import check_agreement
from tests.loaders.torch.record import handed_out, recorded
from tests.loaders.torch.settings import SIZES, asked_of, settings_by_chance

_LIBRARIES = {"torch": "torch", "stateful": "torchdata", "accelerate": "accelerate"}
_NUM_LIVE = FUZZ * 300 // 2000  # settings of a loader


def test_what_was_recorded_is_what_torch_hands_out() -> None:
    pytest.importorskip("torch", reason="needs PyTorch: pip install 'shardctl[torch]'")
    for case in counted(recorded("torch")[:12]):
        if not case["asked"].get("workers"):
            assert handed_out("torch", case["asked"]) == case["batches"]


def test_a_seed_that_torch_refuses_is_refused_in_its_words() -> None:
    pytest.importorskip("torch", reason="needs PyTorch: pip install 'shardctl[torch]'")
    asked = asked_of({"n": 3, "seed": 1 << 64, "shares": True})
    with pytest.raises(UsageError, match=r"^PyTorch refuses these settings: "):
        next(library_of(LOADERS["torch"]).batches(asked, range(3)))


def test_the_generator_of_the_caller_is_left_as_it_was() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'shardctl[torch]'")
    torch.manual_seed(4)
    before = torch.random.get_rng_state()
    asked = asked_of({"n": 9, "global_seed": 5, "shuffle": True, "first_epoch": 2})
    assert sum(map(len, library_of(LOADERS["torch"]).batches(asked, range(9)))) == 9
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.fuzz
@pytest.mark.parametrize("loader", _LIBRARIES)
def test_orders_are_those_of_the_real_loader(loader: str) -> None:
    """With 2 and 3 workers too, of which each epoch starts processes."""
    library = _LIBRARIES[loader]
    pytest.importorskip(library, reason=f"needs {library}: pip install 'shardctl[torch]'")
    rng = random_of_a_fuzz_run()
    for case in range(_NUM_LIVE):
        workers = (2, 3) if case % 10 == 0 else (0,)
        check_live(loader, settings_by_chance(loader, rng, workers=workers, sizes=SIZES))


def check_live(loader: str, settings: dict[str, Any]) -> None:
    asked = asked_of(settings)
    batches = handed_out(loader, settings)
    print(settings)
    if batches is None:
        with pytest.raises(UsageError):
            LOADERS[loader].sequence(asked)
    else:
        found, batched = LOADERS[loader].sequence(asked), asked.batch is not None
        check_agreement(found, batches, asked.num_examples, batched=batched)
    add_cases()
