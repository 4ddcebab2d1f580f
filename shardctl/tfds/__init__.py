"""The bridge to TensorFlow Datasets: plans and orders as datasets that a training loop reads.

Importing this loads neither TensorFlow nor TFDS; the calls do.
"""

from shardctl.tfds.builder_layout import dataset_of
from shardctl.tfds.pipeline import pipeline

__all__ = ["dataset_of", "pipeline"]
