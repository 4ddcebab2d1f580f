"""Each framework's part of a script is whole: what it names is imported or made in the script."""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Iterator
from string import Template
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shardctl.verbs.resume.code import FRAMEWORKS, script_part
from tests.order.toy_pipelines import Toys

GIVEN = {"tf", "tfds", "shardctl", "os", "builder", "position"}  # by every script


def globals_of(code: types.CodeType, wanted: str) -> Iterator[str]:
    """Yield the global names that code loads ("LOAD") or makes ("STORE"), functions in it too."""
    for step in dis.get_instructions(code):
        if step.opname in (f"{wanted}_NAME", f"{wanted}_GLOBAL"):
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and wanted == "LOAD":
            yield from globals_of(constant, wanted)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_name_is_imported_or_made(name: str) -> None:
    train = Template(script_part(name)).substitute(step=3, epoch=0, epochs=1)
    model = script_part("flax_model" if name == "flax" else "keras_model")
    parts = [*FRAMEWORKS[name], script_part("prepare"), model, train]
    code = compile("\n".join(parts), name, "exec")
    made = set(globals_of(code, "STORE"))
    loaded = set(globals_of(code, "LOAD"))
    assert loaded - made - set(dir(builtins)) <= GIVEN
    assert {line.split()[-1].partition(".")[0] for line in FRAMEWORKS[name]} <= loaded


def test_examples_without_an_image_and_a_label_are_refused(toys: Toys) -> None:
    import tensorflow_datasets as tfds

    names = {"builder": toys["plain"].builder, "tfds": tfds}
    with pytest.raises(SystemExit, match=r"write prepare and the model for FeaturesDict\({\s*'id'"):
        exec(script_part("prepare"), names)


@pytest.mark.parametrize(("shape", "num_pixels"), [((8, 8), 1024), ((4, 6, 3), 3072)])
def test_images_may_be_plain_tensors(shape: tuple[int, ...], num_pixels: int) -> None:
    import tensorflow as tf
    import tensorflow_datasets as tfds

    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Tensor(shape=shape, dtype=np.uint8),
            "label": tfds.features.ClassLabel(num_classes=5),
        }
    )
    names: dict[str, Any] = {
        "builder": SimpleNamespace(info=SimpleNamespace(features=features)),
        "tf": tf,
        "tfds": tfds,
    }
    exec(script_part("prepare"), names)
    assert (names["num_pixels"], names["num_classes"]) == (num_pixels, 5)
    white = tf.fill(shape, tf.constant(255, tf.uint8))
    pixels, label = names["prepare"]({"image": white, "label": 3})
    assert (pixels.numpy().tolist(), label) == ([1.0] * num_pixels, 3)
