"""Kept outputs: which file an id means, lines by number, and room for new ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handrail.shell import outputs as module
from handrail.shell.outputs import Output, Outputs, count_lines, read_page
from handrail.values.completed import Captured

TEXT = b"".join(b"line %d\n" % n for n in range(1, 1001))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "spill"
    path.write_bytes(TEXT)
    return str(path)


@pytest.fixture
def output(file: str) -> Output:
    return Output("out1", file, os.stat(file).st_ino, len(TEXT), len(TEXT))


def test_output_that_memory_held_is_written_when_it_is_kept(tmp_path: Path) -> None:
    outputs = Outputs(str(tmp_path))
    kept = outputs.keep(Captured(head=b"a\n", tail=b"b\n", total_bytes=4))
    assert kept is not None
    assert Path(kept.path).read_bytes() == b"a\nb\n"
    assert (kept.id, outputs.find("out1"), outputs.find("out2"), outputs.ids()) == ("out1", kept, None, ["out1"])


def test_a_spill_is_kept_where_it_is(tmp_path: Path, file: str) -> None:
    kept = Outputs(str(tmp_path)).keep(Captured(head=b"x", dropped_bytes=9, total_bytes=20, spill=file, spill_bytes=12))
    assert kept is not None
    assert (kept.path, kept.kept_bytes, kept.total_bytes) == (file, 12, 20)


def test_what_no_file_holds_cannot_be_kept(tmp_path: Path) -> None:
    assert Outputs(str(tmp_path)).keep(Captured(head=b"x", dropped_bytes=9, total_bytes=20)) is None
    assert Outputs(str(tmp_path / "gone")).keep(Captured(head=b"x", total_bytes=1)) is None


def test_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 10)
    outputs = Outputs(str(tmp_path))
    for _ in range(3):
        outputs.keep(Captured(head=b"12345", total_bytes=5))
    assert outputs.ids() == ["out2", "out3"]
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("block", [1, 7, 1024 * 1024])
@pytest.mark.parametrize("start", [1, 2, 500, 999, 1000, 1001, 5000])
def test_a_page_begins_at_its_line_whatever_the_blocks(
    output: Output, start: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.shell.kept._BLOCK", block)
    page = read_page(output, start, 3, 10_000)
    expected = TEXT.splitlines(keepends=True)[start - 1 : start + 2]
    assert page.data == b"".join(expected)
    assert (page.end_line, page.more, page.cut) == (start + len(expected) - 1, start + 3 <= 1000, False)


def test_a_page_ends_with_the_line_that_fills_it(output: Output) -> None:
    page = read_page(output, 1, 100, 10)
    assert (page.data, page.more, page.cut) == (b"line 1\nline 2\n", True, False)


def test_a_line_of_any_length_costs_no_more_memory_than_its_limit(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINE_BYTES", 3)
    page = read_page(output, 1, 1, 10)
    assert (page.data, page.more, page.cut) == (b"lin", True, True)


def test_lines_are_counted_from_a_byte_on(file: str) -> None:
    assert count_lines(file, 0) == 1000
    assert count_lines(file, len(TEXT) - 1) == 1
    assert count_lines(file, len(TEXT)) == 0


def replaced(path: str, how: str) -> None:
    os.unlink(path)
    if how == "fifo":
        os.mkfifo(path)
    elif how == "link":
        os.symlink("/etc/passwd", path)
    elif how == "directory":
        os.mkdir(path)
    elif how == "file":
        Path(path + ".other").write_text("other\n")
        os.rename(path + ".other", path)


@pytest.mark.parametrize("how", ["gone", "fifo", "link", "directory", "file"])
def test_what_a_command_put_in_the_place_of_a_kept_file_is_not_opened(output: Output, how: str) -> None:
    with open(output.path):  # so that its inode cannot be given to the next file
        replaced(output.path, how)
        with pytest.raises(OSError, match=r"place|regular|No such|symbolic|directory"):
            read_page(output, 1, 10, 1000)


@pytest.mark.parametrize("how", ["gone", "fifo", "link", "directory"])
def test_what_a_command_put_in_the_place_of_a_spill_costs_the_rest_of_the_output_only(
    tmp_path: Path, file: str, how: str
) -> None:
    replaced(file, how)
    with pytest.raises(OSError, match=r"regular|No such|symbolic|directory"):
        count_lines(file, 0)
    captured = Captured(head=b"x", dropped_bytes=9, total_bytes=20, spill=file, spill_bytes=12)
    outputs = Outputs(str(tmp_path))
    outputs.keep(captured)
    outputs.forget(captured)
