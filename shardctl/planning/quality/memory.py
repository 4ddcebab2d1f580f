"""What shuffle buffer does an amount of memory buy, and how well does it shuffle?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardctl.core.phrase import phrase
from shardctl.errors import UsageError
from shardctl.planning.quality.sample import epoch_length
from shardctl.planning.quality.score import Verdict
from shardctl.planning.quality.what_if import (
    Measured,
    Question,
    refuse_fixed_buffer,
    with_buffer,
    with_shuffled_files,
)

# Scores that differ by less are alike: twice the sampling error of an alternative, and more.
_ALIKE = 0.01


@dataclass(frozen=True, kw_only=True)
class MemoryBudget:
    """What an amount of memory buys.

    num_bytes: the memory. fits: examples that fit into it. buffer: the buffer to use, which is not
        larger than the epoch; None where not even two examples fit.
    settings: what to change, by the names of the settings.
    score, verdict: with that buffer in place of any there is; with the present settings but without
        a buffer (`without`); and where files are not shuffled yet, with shuffled files, alone
        (`files`) and besides the buffer (`both`); None where TFDS refuses that.
    """

    num_bytes: int
    fits: int
    buffer: int | None
    whole_epoch: bool
    score: float
    verdict: Verdict
    without: Measured
    files: Measured | None
    both: Measured | None

    @property
    def gains(self) -> bool:
        """Whether the buffer mixes better than no buffer does."""
        return self.score > self.without.score.value + _ALIKE

    @property
    def files_do_as_well(self) -> bool:
        """Whether shuffling files, which takes no memory, mixes as well as the buffer.

        Not where neither does anything.
        """
        if self.files is None:
            return False
        gains = self.files.score.value > self.without.score.value + _ALIKE
        return gains and self.files.score.value >= self.score - _ALIKE


def memory_budget(question: Question, num_bytes: int) -> MemoryBudget:
    """Return what an amount of memory buys.

    Raises:
        UsageError: nothing is known of the size of an example.
    """
    size = question.element_size
    if size is None:
        raise UsageError(
            phrase(
                "how many bytes has a decoded example? this metadata says neither shapes nor "
                "sizes; give {example_bytes=N}"
            )
        )
    settings = question.settings
    refuse_fixed_buffer(settings, "memory")
    bare = replace(settings, buffer=None, buffer_seed=None, buffer_reshuffle=None)
    without = question.measured(bare)
    num_examples = epoch_length(question.order(bare))
    fits = size.fits(num_bytes)
    buffer = min(fits, num_examples)
    files = (
        None if settings.shuffles_files else question.measured_if_allowed(with_shuffled_files(bare))
    )
    bought, both = without, None
    if buffer > 1:
        bought = question.measured(with_buffer(settings, buffer))
        if files is not None:
            both = question.measured_if_allowed(with_shuffled_files(with_buffer(settings, buffer)))
    return MemoryBudget(
        num_bytes=num_bytes,
        fits=fits,
        buffer=buffer if buffer > 1 else None,
        whole_epoch=fits >= num_examples,
        score=bought.score.value,
        verdict=bought.verdict,
        without=without,
        files=files,
        both=both,
    )
