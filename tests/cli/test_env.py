from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

Handrail = Callable[..., subprocess.CompletedProcess[str]]

HOST = {
    "GITHUB_TOKEN": "ghp_thesecret",
    "GOPATH": "/go/thesecret",
    "APP_MODE": "thesecret",
    "LD_LIBRARY_PATH": "/thesecret",
}


def sections(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("  "):
            found[list(found)[-1]].append(line.strip())
        else:
            found[line] = []
    return found


def test_names_are_told_and_values_are_not(handrail: Handrail) -> None:
    done = handrail("env", **HOST)
    assert (done.returncode, done.stderr) == (0, "")
    told = sections(done.stdout)
    assert list(told) == ["Copied from here:", "Set by handrail:", "Withheld (policy 'allow'):"]
    copied, fixed, withheld = told.values()
    assert {"PATH", "GOPATH"} <= set(copied)
    assert {"TERM", "TMPDIR", "GIT_EDITOR"} <= set(fixed)
    assert {"GITHUB_TOKEN", "APP_MODE", "LD_LIBRARY_PATH"} <= set(withheld)
    assert not set(copied) & set(withheld)
    assert "thesecret" not in done.stdout


@pytest.mark.parametrize(("policy", "passes"), [("allow", False), ("deny", True)])
def test_json_tells_the_same_by_policy(handrail: Handrail, policy: str, passes: bool) -> None:
    done = handrail("env", "--json", "--env", policy, **HOST)
    told = json.loads(done.stdout)
    assert told["policy"] == policy
    assert ("APP_MODE" in told["copied"]) is passes
    assert ("APP_MODE" in told["withheld"]) is not passes
    assert "GITHUB_TOKEN" in told["withheld"]
    assert "thesecret" not in done.stdout


def test_it_tells_what_a_command_really_sees(handrail: Handrail) -> None:
    told = json.loads(handrail("env", "--json", **HOST).stdout)
    seen = handrail("run", "--", "printenv", "-0", **HOST).stdout
    names = {entry.partition("=")[0] for entry in seen.split("\0") if entry}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {*told["copied"], *told["set"]}


def test_a_name_that_could_steer_the_terminal_is_spelt_out(handrail: Handrail) -> None:
    done = handrail("env", **{"A\x1b[2J": "x"})
    assert "\x1b" not in done.stdout
    assert "'A\\x1b[2J'" in done.stdout
