"""What a training script says in each framework: its imports, a model to replace, the training.

In each the position is in the framework's own checkpoints: `tf.train.Checkpoint`,
`BackupAndRestore` of Keras with `ResumeFit`, an item of Orbax. The same model with the same first
weights learns by the same rule in all of them, so that one can be held against the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Framework:
    """The parts of a script behind its `position`.

    Where they begin is `$step`, counted over all epochs, and in Keras `$epoch` of `$epochs`.

    imports: besides those of TensorFlow, TFDS and shardctl.tfds.
    model: a model and its loss for examples of `num_pixels` numbers and `num_classes` labels.
    train: what restores, trains and saves.
    """

    imports: tuple[str, ...]
    model: str
    train: str


def _part(name: str) -> str:
    return (Path(__file__).parent / "scripts" / f"{name}.py.txt").read_text("utf-8")


# For images with labels, of any size, also as plain tensors. Other examples are refused before
# anything is trained.
PREPARE = _part("prepare")

_KERAS_MODEL = _part("keras_model")
FRAMEWORKS: Mapping[str, Framework] = MappingProxyType(
    {
        "loop": Framework(imports=("import keras",), model=_KERAS_MODEL, train=_part("loop")),
        "keras": Framework(imports=("import keras",), model=_KERAS_MODEL, train=_part("keras")),
        "flax": Framework(
            imports=(
                "import optax",
                "import orbax.checkpoint as ocp",
                "from flax import nnx",
                "import shardctl.orbax",
            ),
            model=_part("flax_model"),
            train=_part("flax"),
        ),
    }
)
