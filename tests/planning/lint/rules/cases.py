"""For each rule, settings in which it finds something and the nearest in which it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.lint.context import Usage
from shardctl.planning.lint.lint import Lint, lint

MIB = 1024**2
GIB = 1024**3


def dataset(
    *,
    train: Sequence[int] = (100,) * 64,
    test: Sequence[int] = (50,) * 8,
    num_bytes: int | None = 10 * GIB,
    file_format: str = "tfrecord",
    ordered: bool = False,
) -> Dataset:
    """A dataset of 64 shards of 100 examples, unless said otherwise."""
    return Dataset(
        name="toy",
        splits=(
            Split(name="train", shard_lengths=tuple(train), num_bytes=num_bytes),
            Split(name="test", shard_lengths=tuple(test), num_bytes=num_bytes),
        ),
        file_format=file_format,
        ordered=ordered,
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a project reads, and how: read settings, then what `Usage` holds."""

    read: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    specs: tuple[str, ...] | None = None
    evaluated: tuple[str, ...] = ()
    layout: dict[str, Any] = field(default_factory=dict)

    def lint(self) -> Lint:
        """Return what is found."""
        return lint(
            dataset(**self.layout),
            self.specs,
            self.evaluated,
            ReadSettings(**self.read),
            Usage(**self.usage),
        )

    def codes(self) -> list[str]:
        """Return the codes of what is found."""
        return [finding.rule.code for finding in self.lint().findings]


def case(
    *specs: str,
    evaluated: tuple[str, ...] = (),
    usage: dict[str, Any] | None = None,
    layout: dict[str, Any] | None = None,
    **read: Any,
) -> Case:
    """Return a case; without specs the default one is read."""
    return Case(
        read=read,
        usage=usage or {},
        specs=specs or None,
        evaluated=evaluated,
        layout=layout or {},
    )


HOSTS: dict[str, Any] = {"usage": {"num_hosts": 4}}
SEEDED: dict[str, Any] = {"shuffle_seed": 1, "buffer": 2000, "buffer_seed": 2}
ENDLESS: dict[str, Any] = {"repeat_files": True, "shuffle_seed": 1}
SOURCE: dict[str, Any] = {"usage": {"as_data_source": True}}
PARQUET: dict[str, Any] = {**SOURCE, "layout": {"file_format": "parquet"}}
SMALL: dict[str, Any] = {"layout": {"num_bytes": 100 * MIB}}
ONE_FILE: dict[str, Any] = {"layout": {"train": (100,)}}

# (code, fires, does not)
CASES: tuple[tuple[str, Case, Case], ...] = (
    ("SC001", case(epochs=2), case(epochs=1)),
    ("SC001", case(epochs=2), case(epochs=2, **SEEDED)),
    ("SC001", case(epochs=2, shuffle_seed=1, reshuffle=False), case(epochs=2, shuffle_seed=1)),
    (
        "SC001",
        case(epochs=2, buffer=2000, buffer_seed=1, buffer_reshuffle=False),
        case(epochs=2, buffer=2000, buffer_seed=1),
    ),
    ("SC001", case(epochs=2, shuffle_seed=1, **ONE_FILE), case(epochs=2, shuffle_seed=1)),
    ("SC001", case(pass_index=1), case(pass_index=1, **SEEDED)),
    ("SC001", case(repeat_files=True), case(**ENDLESS)),
    ("SC001", case(epochs=2, buffer=1, buffer_seed=1), case("test", epochs=2)),
    # 16 files of 100 at a time are 1600 examples, a tenth of which is 160.
    ("SC002", case(buffer=159, buffer_seed=1), case(buffer=160, buffer_seed=1)),
    ("SC002", case(buffer=9, buffer_seed=1, cycle=1), case(buffer=10, buffer_seed=1, cycle=1)),
    ("SC002", case(buffer=19, buffer_seed=1, layout={"train": (100, 100)}), case(**SEEDED)),
    ("SC002", case(buffer=100, buffer_seed=1), case(buffer=-2, buffer_seed=1)),
    ("SC003", case(epochs=2, shuffle_seed=1), case(shuffle_seed=1)),
    ("SC003", case(**ENDLESS), case(**ENDLESS, buffer=2000, buffer_seed=1)),
    ("SC004", case(shuffle_seed=1, **ONE_FILE), case(shuffle_seed=1)),
    ("SC004", case("train[:1shard]", shuffle_seed=1), case("train[:2shard]", shuffle_seed=1)),
    (
        "SC004",
        case(shuffle_seed=1, usage={"num_hosts": 64}),
        case(shuffle_seed=1, usage={"num_hosts": 32}),
    ),
    ("SC005", case(buffer=1, buffer_seed=1), case(buffer=2, buffer_seed=1)),
    ("SC006", case(shuffle_files=True), case(shuffle_seed=1)),
    ("SC006", case(buffer=2000), case(buffer=2000, buffer_seed=1)),
    ("SC006", case(buffer=2000), case(buffer=2000, global_seed=1)),
    ("SC007", case(deterministic=False), case(deterministic=True)),
    ("SC008", case(shuffle_files=True, global_seed=1), case(shuffle_seed=2, global_seed=1)),
    (
        "SC008",
        case(shuffle_files=True, global_seed=1),
        case(shuffle_files=True, global_seed=1, deterministic=True),
    ),
    (
        "SC009",
        case(**ENDLESS, buffer=-2, buffer_seed=1),
        case(epochs=9, shuffle_seed=1, buffer=-2, buffer_seed=1),
    ),
    ("SC011", case(shuffle_seed=1, global_seed=2), case(shuffle_seed=1)),
    ("SC011", case(buffer=2000, buffer_seed=1, global_seed=2), case(global_seed=2)),
    ("SC012", case(usage={"seeds": (0, 2**31 - 1)}), case(usage={"seeds": (0, 2**31 - 2)})),
    ("SC012", case(usage={"seeds": (5, 6, 5)}), case(usage={"seeds": (5, 6, -5)})),
    (
        "SC012",
        case(shuffle_seed=-1, buffer=2000, buffer_seed=2**31 - 2),
        case(shuffle_seed=7, buffer=2000, buffer_seed=7),
    ),
    ("SC013", case(buffer=2000, global_seed=1), case(buffer=2000, buffer_seed=1, global_seed=1)),
    (
        "SC013",
        case(shuffle_files=True, global_seed=1, deterministic=True),
        case(shuffle_seed=1, global_seed=1),
    ),
    ("SC014", case(loop="keras-fit", shuffle_seed=1), case(loop="python", shuffle_seed=1)),
    (
        "SC014",
        case(loop="keras-fit", shuffle_seed=1),
        case(loop="keras-fit", shuffle_seed=1, reshuffle=False),
    ),
    (
        "SC014",
        case(loop="keras-fit", shuffle_seed=1),
        case(loop="keras-fit", shuffle_seed=1, host_by="files", **HOSTS),
    ),
    (  # an InputContext of one host hides the length too
        "SC014",
        case(loop="keras-fit", shuffle_seed=1, host_by="files"),
        case(loop="keras-fit", shuffle_seed=1, host_by="files", host=Host(index=0, count=1)),
    ),
    (
        "SC015",
        case(shuffle_seed=1, epochs=3, pass_index=1),
        case(shuffle_seed=1, epochs=3, pass_index=0),
    ),
    (
        "SC015",
        case(shuffle_seed=1, epochs=3, pass_index=1),
        case(epochs=3, pass_index=1, **SEEDED),
    ),
    ("SC016", case(**ENDLESS, pass_index=1), case(**ENDLESS)),
    (
        "SC016",
        case(loop="keras-fit", shuffle_seed=1, epochs=2, batch=10),
        case(loop="keras-fit", shuffle_seed=1, epochs=2, batch=7),
    ),
    (
        "SC016",
        case(loop="keras-fit", shuffle_seed=1, epochs=2, batch=7, drop_remainder=True),
        case(loop="keras-fit", shuffle_seed=1, batch=10),
    ),
    ("SC021", case(cycle="auto", cpus=8), case(cycle=3)),
    ("SC022", case(**ENDLESS), case(**ENDLESS, usage={"assert_cardinality": False})),
    ("SC022", case(**ENDLESS), case(**ENDLESS, host_by="files", **HOSTS)),
    ("SC022", case(**ENDLESS, usage={"take": 6401}), case(**ENDLESS, usage={"take": 6400})),
    ("SC023", case(repeat_files=True, **SMALL), case(repeat_files=True)),
    (
        "SC023",
        case(repeat_files=True, **SMALL),
        case(repeat_files=True, usage={"try_autocache": False}, **SMALL),
    ),
    ("SC023", case("train[:1shard]", **ENDLESS, **SMALL), case(**ENDLESS, **SMALL)),
    (
        "SC023",
        case(repeat_files=True, **SMALL),
        case(repeat_files=True, layout={"num_bytes": None}),
    ),
    # 3 times 16 files, and 16 more.
    ("SC024", case(usage={"max_open_files": 63}), case(usage={"max_open_files": 64})),
    ("SC024", case(cycle=40, usage={"max_open_files": 79}), case(cycle=40)),
    (
        "SC024",
        case(cycle=40, usage={"max_open_files": 79}),
        case(cycle=40, usage={"max_open_files": 80}),
    ),
    ("SC025", case(cycle=65), case(cycle=64)),
    ("SC025", case(cycle=17, **HOSTS), case(cycle=16, **HOSTS)),
    ("SC025", case(cycle=16, **ONE_FILE), case(**ONE_FILE)),
    ("SC026", case(shuffle_seed=1, layout={"ordered": True}), case(layout={"ordered": True})),
    ("SC026", case(cycle=2, layout={"ordered": True}), case(cycle=1, layout={"ordered": True})),
    ("SC026", case(cycle="auto", cpus=1, layout={"ordered": True}), case(shuffle_seed=1)),
    ("SC027", case(**SOURCE), case(**PARQUET)),
    (
        "SC027",
        case(usage={"as_data_source": False}, layout={"file_format": "array_record"}),
        case(layout={"file_format": "array_record"}),
    ),
    ("SC028", case("train[:150]", **PARQUET), case("train[:200]", **PARQUET)),
    ("SC028", case("train[1:]", **PARQUET), case("train[1:]", layout={"file_format": "parquet"})),
    ("SC028", case("train[:50]+test", **PARQUET), case("train[3shard]+test", **PARQUET)),
    (
        "SC028",
        case(usage={"as_data_source": True, "num_hosts": 3}, layout={"file_format": "parquet"}),
        case(usage={"as_data_source": True, "num_hosts": 4}, layout={"file_format": "parquet"}),
    ),
    ("SC029", case(**PARQUET, shuffle_seed=1), case(shuffle_seed=1)),
    ("SC029", case(**PARQUET, cycle=4), case(**PARQUET, epochs=3)),
    ("SC031", case(usage={"num_hosts": 65}), case(usage={"num_hosts": 64})),
    ("SC031", case(host=Host(index=3, count=65)), case(host=Host(index=3, count=64))),
    (
        "SC031",
        case(host_by="files", usage={"num_hosts": 65}),
        case(host_by="examples", usage={"num_hosts": 65}),
    ),
    ("SC032", case(usage={"num_hosts": 7}), case(usage={"num_hosts": 8})),
    (
        "SC032",
        case("train[:9shard]", host_by="files", **HOSTS),
        case("train[:8shard]", host_by="files", **HOSTS),
    ),
    (
        "SC033",
        case(host_by="examples", usage={"num_hosts": 8}),
        case(host_by="even", usage={"num_hosts": 8}),
    ),
    (
        "SC033",
        case(host_by="examples", usage={"num_hosts": 2}),
        case(host_by="examples", usage={"num_hosts": 2}, **SMALL),
    ),
    # 6400 examples on 6 hosts are 1067 or 1066, and on 7 hosts 915 or 914.
    (
        "SC034",
        case(batch=533, usage={"num_hosts": 6}),
        case(batch=533, usage={"num_hosts": 8}),
    ),
    (
        "SC034",
        case(batch=1, usage={"num_hosts": 7}),
        case(batch=1, usage={"num_hosts": 7, "take": 914}),
    ),
    (
        "SC034",
        case(batch=915, usage={"num_hosts": 7}, drop_remainder=True),
        case(batch=915, usage={"num_hosts": 7}),
    ),
    (
        "SC034",
        case(host_by="files", usage={"num_hosts": 7}),
        case(host_by="even", usage={"num_hosts": 7}),
    ),
    ("SC035", case(shuffle_seed=1, **HOSTS), case(shuffle_seed=1)),
    (
        "SC035",
        case(shuffle_seed=1, host_by="files", **HOSTS),
        case(shuffle_seed=1, host_by="files", usage={"num_hosts": 7}),
    ),
    (
        "SC035",
        case(shuffle_seed=1, host_by="files", **HOSTS),
        case(shuffle_seed=1, host_by="examples", **HOSTS),
    ),
    (
        "SC036",
        case(shuffle_files=True, host_by="examples", **HOSTS),
        case(shuffle_seed=1, host_by="examples", **HOSTS),
    ),
    (
        "SC036",
        case(deterministic=False, host_by="examples", **HOSTS),
        case(deterministic=False, host_by="even", **HOSTS),
    ),
    (
        "SC036",
        case(shuffle_files=True, global_seed=1, host_by="examples", **HOSTS),
        case(shuffle_files=True, global_seed=1, deterministic=True, host_by="examples", **HOSTS),
    ),
    ("SC037", case("train[:3]", **HOSTS), case("train[:4]", **HOSTS)),
    (
        "SC041",
        case("train[:60%]", evaluated=("train[50%:]",)),
        case("train[:60%]", evaluated=("train[60%:]",)),
    ),
    ("SC041", case("train+test", "test"), case("train", "test")),
    (
        "SC041",
        case("train", evaluated=("train[-1:]",)),
        case("train[:-1]", evaluated=("train[-1:]",)),
    ),
    ("SC042", case("train[:60%]", "train[50%:]"), case("train[:60%]", "train[60%:]")),
    ("SC042", case("test[:9]", "test[8:]"), case("train[:60%]", evaluated=("train[50%:]",))),
    ("SC043", case("train[:60%]+train[50%:]"), case("train[:60%]+train[60%:]")),
    ("SC044", case("train[:0shard]"), case("train[:1shard]")),
    ("SC044", case("train[3:50%]"), case("train[3%:50%]")),
    ("SC044", case("train[5:5]"), case("train[5:6]")),
    ("SC045", case("train[:99]", "train[100:]"), case("train[:100]", "train[100:]")),
    ("SC045", case("train[:99]", evaluated=("train[163:]",)), case("train[:99]", "train[164:]")),
    ("SC046", case(usage={"take": 17}), case(usage={"take": 16})),
    ("SC046", case(usage={"take": 17}), case(cycle=1, usage={"take": 17})),
    ("SC046", case(usage={"take": 6300}), case(usage={"take": 6400})),
    ("SC046", case(usage={"take": 16}, reverse=True), case(usage={"take": 99}, **ONE_FILE)),
    ("SC046", case(usage={"take": 16}, shuffle_files=True), case(usage={"take": 16}, block=99)),
    ("SC046", case(usage={"take": 17, "num_hosts": 4}), case(usage={"take": 1600, "num_hosts": 4})),
    # 400 examples in batches of 64 leave 16.
    (
        "SC051",
        case("test", batch=64, drop_remainder=True),
        case("test", batch=50, drop_remainder=True),
    ),
    (
        "SC051",
        case("train[:90%]", evaluated=("train[90%:]",), batch=100, drop_remainder=True),
        case("train[:90%]", "train[90%:]", batch=100, drop_remainder=True),
    ),
    ("SC051", case("test", batch=64, drop_remainder=True), case("test", batch=64)),
    (
        "SC061",
        case(layout={"file_format": "parquet", "train": (9, 101)}),
        case(layout={"file_format": "parquet", "train": (9, 100)}),
    ),
    ("SC061", case(**PARQUET | {"layout": {"file_format": "parquet", "train": (214,)}}), case()),
)
