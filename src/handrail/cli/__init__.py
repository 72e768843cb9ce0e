"""The `handrail` command: one module for each subcommand. It decides nothing that a toolbox decides."""
