"""The options of a pipeline, as they are in force at its end."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from shardctl.core.stages.stages import WithOptions
from shardctl.tfds.recognizing.graph import Operation


@dataclass(frozen=True, kw_only=True)
class Options:
    """What options say about the order, for the whole of a pipeline.

    Options that are set twice are merged, and the outermost wins, so only what is in force counts.

    noop_elimination: `experimental_optimization.noop_elimination`.
    op_determinism: `tf.config.experimental.enable_op_determinism`, which stands above them.
    """

    deterministic: bool | None = None
    fusion: bool | None = None
    optimizations: bool | None = None
    warm_start: bool | None = None
    noop_elimination: bool | None = None
    op_determinism: bool = False

    @property
    def removes_nothing_done(self) -> bool:
        """Whether TensorFlow takes stages out that do nothing."""
        if self.noop_elimination is None:
            return self.optimizations is not False
        return self.noop_elimination

    @property
    def hands_out_what_is_ready(self) -> bool:
        """Whether parallel stages that say nothing else hand out what is ready first."""
        return self.deterministic is False and not self.op_determinism

    def in_force(self, stated: Options) -> WithOptions:
        """Return `with_options` with what it states and nothing later overrides."""
        said = {}
        for field in fields(WithOptions):
            value = getattr(stated, field.name)
            if value is not None and value == getattr(self, field.name):
                said[field.name] = value
        if self.op_determinism:
            said.pop("deterministic", None)
        return WithOptions(**said)


def options_of(operation: Operation) -> Options:
    """Return what one `with_options` states."""
    from tensorflow.core.framework import dataset_options_pb2  # no public name

    return _of_message(
        dataset_options_pb2.Options.FromString(operation.attributes["serialized_options"].s)
    )


def options_in_force(dataset: Any) -> Options:
    """Return the options of a whole `tf.data.Dataset`."""
    from tensorflow.python.framework import config  # no public name

    options = dataset.options()
    optimization = options.experimental_optimization
    return Options(
        deterministic=options.deterministic,
        fusion=optimization.shuffle_and_repeat_fusion,
        optimizations=optimization.apply_default_optimizations,
        warm_start=getattr(options, "experimental_warm_start", None),
        noop_elimination=optimization.noop_elimination,
        op_determinism=bool(config.is_op_determinism_enabled()),
    )


def _of_message(message: Any) -> Options:
    optimization = message.optimization_options
    return Options(
        deterministic=_stated(message, "deterministic"),
        fusion=_stated(optimization, "shuffle_and_repeat_fusion"),
        optimizations=_stated(optimization, "apply_default_optimizations"),
        warm_start=_stated(message, "warm_start"),
        noop_elimination=_stated(optimization, "noop_elimination"),
    )


def _stated(message: Any, name: str) -> bool | None:
    """Return a field of a message where it is set, as members of a oneof are or are not."""
    oneof = f"optional_{name}"
    if message.WhichOneof(oneof) is None:
        return None
    return bool(getattr(message, name))
