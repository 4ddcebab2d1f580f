"""tf.data's order for Grain: a sampler, a loader and a dataset over `tfds.data_source`.

    import shardctl.grain

    source = tfds.data_source("digits", split="train")
    loader = shardctl.grain.data_loader(source, "digits", "train", settings, workers=2)

What the model sees is what `tfds.load` with these settings would yield, batch for batch.
Importing this imports neither Grain nor TensorFlow, and reading needs no TensorFlow.
"""

from shardctl.grain.loader import (
    Sampler,
    data_loader,
    elastic_iterator,
    fit_epochs,
    keep_texts,
    map_dataset,
)
from shardctl.grain.states import consumed, state_at

__all__ = [
    "Sampler",
    "consumed",
    "data_loader",
    "elastic_iterator",
    "fit_epochs",
    "keep_texts",
    "map_dataset",
    "state_at",
]
