"""Options that several subcommands share, declared once so that they mean the same everywhere."""

from __future__ import annotations

import click

workspace = click.option(
    "--workspace",
    envvar="HANDRAIL_WORKSPACE",
    default=".",
    show_default="the current directory",
    show_envvar=True,
    metavar="DIR",
    help="The directory tree to work in.",
)

env_policy = click.option(
    "--env",
    "policy",
    type=click.Choice(["allow", "deny"]),
    default="allow",
    show_default=True,
    help="Start from nothing and copy what programs need (allow), or from everything minus secrets (deny).",
)

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of words.")
