"""`python -m autosft.cli` is the `autosft` command."""

from __future__ import annotations

from autosft.cli import main

main()
