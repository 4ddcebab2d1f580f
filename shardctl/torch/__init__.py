"""tf.data's order for PyTorch: a sampler and a loader over `tfds.data_source`.

    import shardctl.torch

    source = tfds.data_source("digits", split="train")
    loader = shardctl.torch.data_loader(source, "digits", "train", settings, workers=2)

`AllRanks(loader)` is a part of the checkpoints of Accelerate, Trainer and torch.distributed.
`RecordFiles` are the examples of Parquet files or tar archives, in place of `tfds.data_source`.

What the model sees is what `tfds.load` with these settings would yield, batch for batch.
Importing this imports neither PyTorch nor TensorFlow, and reading needs no TensorFlow.
"""

from shardctl.torch.files import RecordFiles
from shardctl.torch.loader import AllRanks, Sampler, collate_as_tf_data, consumed, data_loader

__all__ = ["AllRanks", "RecordFiles", "Sampler", "collate_as_tf_data", "consumed", "data_loader"]
