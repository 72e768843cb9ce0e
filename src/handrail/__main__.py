"""`python -m handrail`: the command line of `handrail`, and nothing of its own."""

from __future__ import annotations

from handrail.cli.main import main

if __name__ == "__main__":
    main()
