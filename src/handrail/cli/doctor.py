"""`handrail doctor`: what holds on this machine, what does not, why, and what would change it."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict

import click

from handrail.cli import options
from handrail.cli.words import protection
from handrail.errors import SandboxUnavailable
from handrail.hosts.diagnosis import Diagnosis, Finding, diagnose, tiers
from handrail.state import SessionDirectory, directories
from handrail.values.place import Place, Sandbox
from handrail.workspace import Workspace

AS_ASKED = 0
NOT_TO_BE_HAD = 1


@click.command()
@options.workspace
@click.option(
    "--sandbox",
    type=click.Choice(["required", "best"]),
    default="required",
    show_default=True,
    help="What to look for: see `handrail run`.",
)
@click.option("--network", is_flag=True, help="Look at a session that has the network.")
@options.as_json
def doctor(*, workspace: str, sandbox: Sandbox, network: bool, as_json: bool) -> int:
    """Try on this machine what a command must not be able to do.

    Ends with 1 where the sandbox that was asked for cannot be had.
    """
    root = Workspace(workspace).root
    with closing(SessionDirectory(None, root)) as directory:
        place = Place(
            workspace=root,
            session=directory.path,
            cache=directory.cache,
            state=tuple(dict.fromkeys((*directories(), directory.place))),
            sandbox=sandbox,
            network=network,
        )
        found: Diagnosis | None = None
        refusal: SandboxUnavailable | None = None
        try:
            found = diagnose(place)
        except SandboxUnavailable as unavailable:
            refusal = unavailable
        rows = found.tiers if found is not None else tuple(tiers(place))
    if as_json:
        click.echo(json.dumps(_facts(found, rows)))
    else:
        _print(found, rows)
        if refusal is not None:
            click.echo(f"handrail: {refusal}", err=True)
    return NOT_TO_BE_HAD if refusal is not None else AS_ASKED


def _facts(found: Diagnosis | None, tiers: tuple[Finding, ...]) -> dict[str, object]:
    return {
        "enforced": asdict(found.enforced) if found is not None else None,
        "tiers": [asdict(row) for row in tiers],
        "layers": [asdict(row) for row in found.layers] if found is not None else [],
    }


def _print(found: Diagnosis | None, tiers: tuple[Finding, ...]) -> None:
    if found is not None:
        click.echo(f"A command here runs in: {protection(**asdict(found.enforced))}\n")
    rows = [*tiers, *(found.layers if found is not None else ())]
    width = max(len(row.layer) for row in rows)
    for row in rows:
        click.echo(f"{'ok ' if row.holds else 'NO '} {row.layer.ljust(width)}  {row.why}")
        if row.remedy:
            click.echo(f"    {' ' * width}  -> {row.remedy}")
