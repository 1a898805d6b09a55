"""Data actions, and the build that turns a recipe of them into a training set."""

from __future__ import annotations

from autosft.actions.apply import apply_recipe, check_lineage
from autosft.actions.building import Build, build, load_build
from autosft.actions.catalogue import Action, catalogue, check_call, kinds, load
from autosft.actions.context import ActionContext
from autosft.actions.decontaminate import BenchmarkIndex, scan
from autosft.actions.diff import diff_pools
from autosft.actions.guard import BuildGuard, require_clean
from autosft.actions.plan import Plan, optimizer_steps
from autosft.actions.programs import Program

__all__ = [
    "Action",
    "ActionContext",
    "BenchmarkIndex",
    "Build",
    "BuildGuard",
    "Plan",
    "Program",
    "apply_recipe",
    "build",
    "catalogue",
    "check_call",
    "check_lineage",
    "diff_pools",
    "kinds",
    "load",
    "load_build",
    "optimizer_steps",
    "require_clean",
    "scan",
]
