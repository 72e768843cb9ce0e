"""`handrail env`: which variables a command would see. Names only: a value could be a secret."""

from __future__ import annotations

import json
import os
from contextlib import closing

import click

from handrail.cli.options import as_json, env_policy, workspace
from handrail.hosts.local import LocalHost
from handrail.process.environment import ALWAYS, Policy, build
from handrail.state import SessionDirectory, directories
from handrail.values.place import Place
from handrail.workspace import Workspace


@click.command()
@workspace
@env_policy
@as_json
def env(*, workspace: str, policy: Policy, as_json: bool) -> None:
    """Print the names of the variables that a command would see, and of those withheld from it."""
    root = Workspace(workspace).root
    with closing(SessionDirectory(None, root)) as directory, closing(LocalHost()) as host:
        place = Place(
            workspace=root,
            session=directory.path,
            cache=directory.cache,
            state=(*directories(), directory.place),
            sandbox="best",
        )
        host.open(place)
        of_the_place = host.variables(network=False)
        built = build(os.environ, policy=policy, tmpdir=host.seen(place.tmp))
    fixed = sorted({*ALWAYS, "TMPDIR", *of_the_place})
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
