"""Rules for Landlock, as values: what each version of it is asked for."""

from __future__ import annotations

import json

import pytest

from handrail.sandbox import landlock
from handrail.sandbox.landlock import Ruleset

READ = 0b1101  # EXECUTE, READ_FILE, READ_DIR


@pytest.mark.parametrize(
    ("abi", "fs", "scoped"),
    [
        (1, 0x1FFF, 0),
        (2, 0x3FFF, 0),  # REFER
        (3, 0x7FFF, 0),  # TRUNCATE
        (4, 0x7FFF, 0),  # TCP, which is not asked for
        (5, 0xFFFF, 0),  # IOCTL_DEV
        (6, 0xFFFF, 3),  # ABSTRACT_UNIX, SIGNAL
        (7, 0xFFFF, 3),
        (99, 0xFFFF, 3),
    ],
)
def test_each_version_is_asked_for_all_that_it_knows(abi: int, fs: int, scoped: int) -> None:
    made = landlock.ruleset(abi, writable=["/work", "/tmp/a b"], devices=["/dev/null", "/dev/pts"])
    rules = (("/", READ), ("/work", fs), ("/tmp/a b", fs), ("/dev/null", fs), ("/dev/pts", fs))
    assert made == Ruleset(fs=fs, net=0, scoped=scoped, rules=rules)


def test_what_may_be_read_can_be_less_than_everything() -> None:
    made = landlock.ruleset(1, writable=["/work"], devices=[], readable=["/usr", "/etc"])
    assert made.rules == (("/usr", READ), ("/etc", READ), ("/work", 0x1FFF))


def test_a_path_that_is_named_twice_is_writable() -> None:
    made = landlock.ruleset(1, writable=["/work"], devices=["/dev/shm"], readable=["/work", "/dev/shm"])
    assert made.rules == (("/work", 0x1FFF), ("/dev/shm", 0x1FFF))


def test_nothing_is_made_for_a_kernel_without_landlock() -> None:
    with pytest.raises(ValueError, match="needs a kernel that has Landlock"):
        landlock.ruleset(0, writable=["/work"], devices=[])


@pytest.mark.parametrize(
    ("abi", "made"),
    [(0, None), (1, None), (5, None), (6, Ruleset(fs=0, net=0, scoped=1)), (7, Ruleset(fs=0, net=0, scoped=1))],
)
def test_abstract_sockets_alone_can_be_scoped_from_version_6(abi: int, made: Ruleset | None) -> None:
    assert landlock.scope_only(abi) == made


def test_a_ruleset_travels_as_json() -> None:
    made = landlock.ruleset(6, writable=["/w\udc80\n"], devices=[])  # a name that is no text
    row = {"fs": 0xFFFF, "net": 0, "scoped": 3, "rules": [["/", READ], ["/w\udc80\n", 0xFFFF]]}
    assert json.loads(json.dumps(made.as_json())) == row
