"""Answers reach stdout or a file, whole or not at all, and messages stderr."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardctl.cli.output import check_format, fail, new_file, say, screen, warn, write
from shardctl.errors import UsageError
from shardctl.rendering.text.screen import Screen
from tests.children import start


def entries(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestFiles:
    def test_text_is_written_as_utf_8_and_bytes_as_they_are(self, tmp_path: Path) -> None:
        write(["é\n", b"\xff\x00", "…"], str(tmp_path / "out"))
        assert entries(tmp_path) == {"out": b"\xc3\xa9\n\xff\x00\xe2\x80\xa6"}

    def test_a_new_file_has_the_permissions_of_any_new_file(self, tmp_path: Path) -> None:
        before = os.umask(0o027)
        try:
            write(["x"], str(tmp_path / "out"))
        finally:
            os.umask(before)
        assert mode_of(tmp_path / "out") == 0o640

    def test_a_file_written_again_keeps_its_permissions(self, tmp_path: Path) -> None:
        path = tmp_path / "out"
        path.write_text("old, and longer than what comes")
        path.chmod(0o604)
        write(["new"], str(path))
        assert (path.read_text(), mode_of(path)) == ("new", 0o604)

    def test_behind_a_link_the_file_is_replaced_and_the_link_stays(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "real").write_text("old")
        link = tmp_path / "link"
        link.symlink_to("folder/real")
        write(["new"], str(link))
        assert link.is_symlink()
        assert entries(tmp_path / "folder") == {"real": b"new"}

    def test_a_link_to_nothing_gets_its_file(self, tmp_path: Path) -> None:
        link = tmp_path / "link"
        link.symlink_to("real")
        write(["new"], str(link))
        assert link.is_symlink()
        assert (tmp_path / "real").read_text() == "new"

    @pytest.mark.parametrize("old", [b"old", None])
    @pytest.mark.parametrize("error", [UsageError, KeyboardInterrupt, MemoryError, OSError])
    def test_what_breaks_off_leaves_everything_as_it_was(
        self, tmp_path: Path, error: type[BaseException], old: bytes | None
    ) -> None:
        before = {} if old is None else {"out": old}
        for name, data in before.items():
            (tmp_path / name).write_bytes(data)

        def chunks() -> Iterator[str]:
            yield "x" * 100_000
            raise error("enough")

        with pytest.raises((error, UsageError)):
            write(chunks(), str(tmp_path / "out"))
        assert entries(tmp_path) == before

    def test_nothing_is_there_before_all_of_it_is(self, tmp_path: Path) -> None:
        with new_file(str(tmp_path / "out")) as file:
            file.write(b"x")
            file.flush()
            assert not (tmp_path / "out").exists()
        assert entries(tmp_path) == {"out": b"x"}

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("", "cannot write '': it is a folder; name a file"),
            (".", "cannot write '.': it is a folder; name a file"),
            ("folder", "cannot write 'folder': it is a folder; name a file"),
            ("folder/", "cannot write 'folder/': it is a folder; name a file"),
            ("new/", "cannot write 'new/': it is a folder; name a file"),
            ("missing/out", "cannot write 'missing/out': there is no folder missing"),
            ("file/out", "cannot write 'file/out': Not a directory"),
            ("loop", "cannot write 'loop': Too many levels of symbolic links"),
            ("a\0b", "cannot write 'a\\x00b': embedded null byte"),
            ("/dev/full", "cannot write '/dev/full': No space left on device"),
        ],
    )
    def test_a_path_that_cannot_be_written_is_refused(
        self, path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").write_text("old")
        (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(UsageError) as error_info:
            write(["x"] * 3, path)
        assert str(error_info.value) == message
        assert entries(tmp_path) == {"file": b"old"}
        assert sorted(os.listdir(tmp_path)) == ["file", "folder", "loop"]

    @pytest.mark.parametrize("length", [200, 255, 256, 5000])
    def test_a_name_may_be_as_long_as_the_file_system_lets_it(
        self, tmp_path: Path, length: int
    ) -> None:
        path = tmp_path / ("x" * length)
        if length <= 255:
            write(["x"], str(path))
            assert path.read_text() == "x"
        else:
            with pytest.raises(UsageError, match="File name too long"):
                write(["x"], str(path))
            assert entries(tmp_path) == {}

    def test_a_name_need_not_be_utf_8(self, tmp_path: Path) -> None:
        write(["x"], os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
        assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\xfe"]

    def test_a_pipe_is_written_in_place(self, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        read: list[str] = []
        reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
        reader.start()
        write(["a", "b"], str(pipe))
        reader.join(timeout=10)
        assert read == ["ab"]
        assert stat.S_ISFIFO(pipe.stat().st_mode)

    def test_dev_null_stays_what_it_is(self) -> None:
        write(["x"], "/dev/null")
        assert not Path("/dev/null").is_file()

    def test_another_thread_may_write(self, tmp_path: Path) -> None:
        thread = threading.Thread(target=write, args=(["x"], str(tmp_path / "out")))
        thread.start()
        thread.join()
        assert entries(tmp_path) == {"out": b"x"}

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    def test_a_killed_program_leaves_no_file(self, tmp_path: Path, number: int) -> None:
        program = (
            "import sys, time\n"
            "from shardctl.cli.output import write\n"
            "def chunks():\n"
            "    yield 'x' * 100_000\n"
            "    print('writing', flush=True)\n"
            "    time.sleep(30)\n"
            "write(chunks(), sys.argv[1])\n"
        )
        process = start(
            [sys.executable, "-c", program, tmp_path / "out"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        assert len(os.listdir(tmp_path)) == 1
        process.send_signal(number)
        assert process.wait(timeout=20) != 0
        process.stdout.close()
        assert os.listdir(tmp_path) == []

    def test_signals_end_a_program_as_before_once_a_file_is_written(self, tmp_path: Path) -> None:
        before = signal.getsignal(signal.SIGTERM)
        write(["x"], str(tmp_path / "out"))
        assert signal.getsignal(signal.SIGTERM) is before


class TestStreams:
    @pytest.mark.parametrize("output", [None, "-"])
    def test_data_goes_to_stdout(
        self, output: str | None, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        write(["é", b"\x00"], output)
        assert capfdbinary.readouterr() == (b"\xc3\xa9\x00", b"")

    def test_text_that_is_no_unicode_is_escaped(
        self, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        write(["a\udcffb"], None)
        say("a\udcffb")
        assert capfdbinary.readouterr() == (b"a\\udcffb", b"a\\udcffb\n")

    def test_a_warning_is_said_once(self, capfd: pytest.CaptureFixture[str]) -> None:
        warn(["one", "two", "one"])
        assert capfd.readouterr() == ("", "warning: one\nwarning: two\n")

    def test_an_error_is_one_line_without_what_a_terminal_acts_on(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        fail("two\nlines\x1b[31m \u202e")
        assert capfd.readouterr() == ("", "error: two lines\\x1b[31m \\u202e\n")

    def test_messages_without_a_stderr_are_no_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", None)
        say("nobody hears this")

    def test_an_answer_without_a_stdout_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdout", None)
        assert screen(None) == Screen()
        with pytest.raises(UsageError, match="cannot write to stdout: it is closed"):
            write(["x"], None)


class TestScreen:
    @pytest.fixture
    def terminal(self, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", "60")
        monkeypatch.setenv("TERM", "xterm")
        return monkeypatch

    def test_a_terminal_has_its_width_and_colour(self, terminal: pytest.MonkeyPatch) -> None:
        assert screen(None) == Screen(width=60, color=True)
        assert screen("-") == Screen(width=60, color=True)

    @pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
    def test_colour_can_be_refused(
        self, terminal: pytest.MonkeyPatch, name: str, value: str
    ) -> None:
        terminal.setenv(name, value)
        assert screen(None) == Screen(width=60, color=False)

    def test_an_empty_no_color_refuses_nothing(self, terminal: pytest.MonkeyPatch) -> None:
        terminal.setenv("NO_COLOR", "")  # https://no-color.org: present and not empty
        assert screen(None).color

    @pytest.mark.parametrize("columns", ["0", "1", "-5", "wide"])
    def test_a_width_that_cannot_be_is_none(
        self, terminal: pytest.MonkeyPatch, columns: str
    ) -> None:
        terminal.setenv("COLUMNS", columns)
        width = screen(None).width
        assert width is not None
        assert width >= 20

    def test_a_file_has_neither(self, terminal: pytest.MonkeyPatch) -> None:
        assert screen("out.txt") == Screen()

    def test_a_pipe_has_neither(self) -> None:
        assert screen(None) == Screen()


def test_a_format_that_a_command_lacks_is_refused_with_the_choices() -> None:
    check_format("json", "table", "json")
    with pytest.raises(UsageError, match="no format 'xml' here; choose from table, json"):
        check_format("xml", "table", "json")
