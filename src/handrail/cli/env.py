"""`handrail env`: which variables a command would see. Names only: a value could be a secret."""

from __future__ import annotations

import json
import os
import tempfile

import click

from handrail.cli.options import as_json, env_policy
from handrail.process.environment import ALWAYS, Policy, build


@click.command()
@env_policy
@as_json
def env(*, policy: Policy, as_json: bool) -> None:
    """Print the names of the variables that a command would see, and of those withheld from it."""
    built = build(os.environ, policy=policy, tmpdir=tempfile.gettempdir())
    fixed = sorted({*ALWAYS, "TMPDIR"})
    copied = sorted(built.variables.keys() - fixed)
    if as_json:
        click.echo(json.dumps({"policy": policy, "copied": copied, "set": fixed, "withheld": built.withheld}))
        return
    for title, names in (
        ("Copied from here", copied),
        ("Set by handrail", fixed),
        (f"Withheld (policy {policy!r})", built.withheld),
    ):
        click.echo(f"{title}:")
        for name in names or ["(none)"]:
            click.echo(f"  {name if name.isprintable() else ascii(name)}")
