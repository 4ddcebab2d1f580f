"""What the rule of a loader is asked: lengths, and the settings of one process."""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.base.arrays import Int64s


@dataclass(frozen=True, kw_only=True, eq=False)
class LoaderConfig:
    """One process that reads examples 0 to `num_examples`, which lie in shards.

    lengths: int64[shards], how many examples of each shard are read, in their order; an example is
        named by its index in all of them, as `tfds.data_source` and `datasets.Dataset` count.
    version: of the library, whose rule it is to be.
    host, num_hosts: this process among those that share the examples; 0 of 1 where `shares` is not.
    first_epoch, epochs: which epochs are read, one after the other; how the library counts them
        (`set_epoch`, the iteration of an object, repetitions) is the rule's affair.

    shard_lengths: int64[files], how many examples the files have that are read, empty ones among
        them too; None where they are `lengths`, every shard read whole.

    file_format: of the record files, "" where the examples are not read from any.

    Settings that nobody gave are None or False.
    """

    lengths: Int64s
    version: str
    file_format: str = ""
    shuffle: bool | None = None
    seed: int | None = None
    global_seed: int | None = None
    first_epoch: int = 0
    epochs: int = 1
    shares: bool = False
    host: int = 0
    num_hosts: int = 1
    host_by: str = "even"
    drop_shard_remainder: bool = False
    workers: int = 0
    persistent_workers: bool | None = None
    batch: int | None = None
    drop_remainder: bool = False
    buffer: int | None = None
    buffer_seed: int | None = None
    streaming: bool | None = None
    arrow: bool | None = None
    before_shuffle: str | None = None
    input_shards: int | None = None
    shard_lengths: Int64s | None = None

    @property
    def num_examples(self) -> int:
        """Number of examples that all processes share."""
        return int(self.lengths.sum())

    @property
    def shuffles(self) -> bool:
        """Whether the examples are shuffled: as asked, else where a seed of the shuffle is."""
        return self.seed is not None if self.shuffle is None else self.shuffle

    def whole_batches(self, num_examples: int) -> int:
        """Return how many of an epoch's examples are left where a last batch is dropped."""
        if not self.drop_remainder or self.batch is None:
            return num_examples
        return num_examples // self.batch * self.batch

    @property
    def streams(self) -> bool:
        """Whether shards are streamed (`IterableDataset`): as asked, else where a buffer is."""
        return self.buffer is not None if self.streaming is None else self.streaming

    @property
    def lengths_of_shards(self) -> Int64s:
        """How many examples the files have that are read, int64[files]."""
        return self.lengths if self.shard_lengths is None else self.shard_lengths

    @property
    def cut_shards(self) -> int:
        """Number of shards of which a part is read."""
        shards = self.lengths_of_shards
        return int((self.lengths != shards[shards > 0]).sum())
