"""The spill: a capped file with the whole output, and a disk that fails."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from handrail.process import OutputLimits, run
from handrail.process.capture import Spill

SMALL = OutputLimits(head_bytes=1000, tail_bytes=500, spill_bytes=100_000)
WHOLE = b"".join(b"%d\n" % n for n in range(1, 100_001))


def test_short_output_makes_no_file(tmp_path: Path) -> None:
    ended = run(["seq", "1", "100"], output=SMALL, spill_dir=str(tmp_path))
    assert (ended.stdout.spill, ended.stdout.spill_error, os.listdir(tmp_path)) == (None, None, [])


def test_the_spill_holds_the_whole_up_to_its_cap_and_the_end_is_kept_beside(tmp_path: Path) -> None:
    ended = run(["seq", "1", "100000"], output=SMALL, spill_dir=str(tmp_path)).stdout
    assert ended.spill is not None
    kept = Path(ended.spill).read_bytes()
    assert kept == WHOLE[:100_000]
    assert (ended.spill_bytes, ended.total_bytes, ended.tail) == (100_000, len(WHOLE), WHOLE[-500:])
    assert ended.unspilled_lines == WHOLE[100_000:].count(b"\n")
    assert stat.S_IMODE(os.stat(ended.spill).st_mode) == 0o600


def test_each_stream_has_its_own_spill(tmp_path: Path) -> None:
    ended = run(["bash", "-c", "seq 1 5000; seq 5001 9000 >&2"], merge=False, output=SMALL, spill_dir=str(tmp_path))
    assert ended.stdout.spill is not None
    assert ended.stderr.spill is not None
    assert Path(ended.stdout.spill).read_bytes().endswith(b"\n5000\n")
    assert Path(ended.stderr.spill).read_bytes().startswith(b"5001\n")


def test_without_a_directory_the_rest_is_only_counted() -> None:
    ended = run(["seq", "1", "100000"], output=SMALL).stdout
    assert (ended.spill, ended.spill_error, ended.total_bytes) == (None, None, len(WHOLE))


def test_a_missing_directory_costs_the_spill_not_the_command(tmp_path: Path) -> None:
    ended = run(["bash", "-c", "seq 1 100000; exit 6"], output=SMALL, spill_dir=str(tmp_path / "gone"))
    assert ended.exit_code == 6
    assert (ended.stdout.spill, ended.stdout.spill_error) == (None, "its directory is gone")
    assert (ended.stdout.head, ended.stdout.tail) == (WHOLE[:1000], WHOLE[-500:])
    assert ended.stdout.unspilled_lines == WHOLE.count(b"\n")


FULL = """
import resource, sys
from handrail.process import OutputLimits, run
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
ended = run(["bash", "-c", "ulimit -f unlimited; seq 1 100000; exit 6"],
            output=OutputLimits(head_bytes=1000, tail_bytes=500), spill_dir=sys.argv[1])
out = ended.stdout
print(ended.exit_code, out.spill_bytes, out.spill_error, out.total_bytes, out.unspilled_lines, out.tail[-7:-1].decode())
"""


def test_a_disk_that_fills_up_costs_the_rest_of_the_spill_not_the_command(tmp_path: Path) -> None:
    ended = run([sys.executable, "-c", FULL, str(tmp_path)])
    lines = WHOLE[20_000:].count(b"\n")
    expected = f"6 20000 files may not grow that large here {len(WHOLE)} {lines} 100000\n"
    assert ended.stdout.head.decode() == expected


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no space is left"),
        (errno.EROFS, "its directory is read-only"),
        (errno.EACCES, "its directory may not be written"),
        (errno.EIO, "the disk refused it"),
    ],
)
def test_a_failing_disk_is_told_in_words(monkeypatch: pytest.MonkeyPatch, number: int, words: str) -> None:
    def fail(_directory: str) -> None:
        raise OSError(number, "as the system says it")

    monkeypatch.setattr("handrail.process.capture.new_spill", fail)
    spill = Spill("anywhere", 100)
    spill.open(memoryview(b"a\nb\n"))
    assert (spill.error, spill.path, spill.kept_bytes, spill.lines_beyond) == (words, None, 0, 2)
