"""Which ways to read there are, and the settings in force in each."""

from __future__ import annotations

from shardctl.loaders.loader import READERS
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality.loaders import Way, ways_to_read


def _way(settings: ReadSettings, start: str) -> Way:
    return next(way for way in ways_to_read(settings) if way.reader.startswith(start))


def test_every_loader_has_a_way() -> None:
    assert {way.settings.loader for way in ways_to_read(ReadSettings())} == {*READERS}


def test_readers_have_names_of_their_own() -> None:
    readers = [way.reader for way in ways_to_read(ReadSettings())]
    assert len({*readers}) == len(readers) == 11


def test_a_buffer_stands_for_the_usual_ones() -> None:
    buffers = [way.settings.buffer for way in ways_to_read(ReadSettings(buffer=77))]
    assert [buffer for buffer in buffers if buffer is not None] == [77] * 4
    usual = [way.settings.buffer for way in ways_to_read(ReadSettings())]
    assert [buffer for buffer in usual if buffer] == [1_000, 10_000, 1_000, 1_000, 1_000]


def test_a_seed_is_that_of_all() -> None:
    for way in ways_to_read(ReadSettings(shuffle_seed=9)):
        taken = {way.settings.shuffle_seed, way.settings.global_seed, way.settings.buffer_seed}
        assert 9 in taken or way.reader.startswith("Grain: window")


def test_a_setting_is_left_out_where_a_loader_does_not_take_it() -> None:
    settings = ReadSettings(cycle=4, batch=32, pass_index=2)
    assert _way(settings, "TFDS").settings.cycle == 4
    assert _way(settings, "torch").settings == ReadSettings(
        loader="torch", shuffle_seed=1, host=Host(index=0, count=1), batch=32, pass_index=2
    )
    assert _way(settings, "Grain: Index").settings == ReadSettings(
        loader="grain", shuffle_seed=1, batch=32
    )


def test_the_loader_that_is_named_gives_its_settings_and_its_version() -> None:
    settings = ReadSettings(loader="grain", workers=2, loader_version="0.2.12")
    assert _way(settings, "Grain: Index").settings.loader_version == "0.2.12"
    assert _way(settings, "StatefulDataLoader").settings.workers == 2
    assert _way(settings, "StatefulDataLoader").settings.loader_version is None
    named = [w.reader for w in ways_to_read(ReadSettings(loader="hf", loader_version="5.0.0"))]
    assert named[2:4] == ["HF 5.0.0: shuffle(1,000)", "HF: Dataset.shuffle"]


def test_files_that_tfds_is_not_to_shuffle_stay_as_they_are() -> None:
    way = _way(ReadSettings(shuffle_files=False), "TFDS")
    assert way.reader == "TFDS: shuffle(1,000)"
    assert not way.settings.shuffles_files


def test_hosts_share_by_a_call_of_the_library() -> None:
    settings = ReadSettings(host=Host(index=1, count=4), host_by="files")
    assert _way(settings, "TFDS").settings.host_by == "files"
    assert _way(settings, "Grain: Index").settings.host_by == "even"
    assert _way(settings, "Grain: window").settings.host_by == "examples"
    assert _way(settings, "torch: Data").settings.host is None
    assert not _way(settings, "torch: Data").shares
    assert str(_way(settings, "Stateful").settings.host) == "1/4"
