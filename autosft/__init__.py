"""autosft: research supervised fine-tuning data in rounds, with agents, on a frozen base and an equal token
budget.

The public API; names load on first use, so `import autosft` stays quick.
"""

from __future__ import annotations

import importlib
from typing import Any

_API = {
    "ActionCall": "autosft.types",
    "ArtifactStore": "autosft.artifacts",
    "AutosftError": "autosft.errors",
    "Event": "autosft.types",
    "Message": "autosft.types",
    "Pool": "autosft.pool",
    "Recipe": "autosft.types",
    "Requirement": "autosft.types",
    "Row": "autosft.types",
    "RowEncoder": "autosft.pool",
    "Taxonomy": "autosft.taxonomy",
    "apply_recipe": "autosft.actions",
    "build": "autosft.actions",
    "campaign_report": "autosft.meta.views_report",
    "export_checkpoint": "autosft.meta.export",
    "track": "autosft.meta.track",
    "write_cards": "autosft.report.cards",
    "catalogue": "autosft.actions",
    "check_requirement": "autosft.taxonomy",
    "diff": "autosft.meta.views_diff",
    "doctor": "autosft.meta.doctor",
    "Environment": "autosft.meta.environment",
    "JobQueue": "autosft.executor.jobs",
    "evaluate": "autosft.executor.evaluate",
    "execute": "autosft.executor",
    "infer_requirements": "autosft.taxonomy",
    "hypotheses": "autosft.meta.views_memory",
    "invalidate": "autosft.meta.operate",
    "lineage": "autosft.meta.views_memory",
    "load_config": "autosft.config",
    "load_suite": "autosft.evals",
    "read_pool": "autosft.pool",
    "read_recipe": "autosft.meta.rebuild",
    "rebuild": "autosft.meta.rebuild",
    "resume_campaign": "autosft.meta",
    "revisit": "autosft.meta.operate",
    "run_campaign": "autosft.meta",
    "verify": "autosft.taxonomy",
    "views": "autosft.meta",
    "write_page": "autosft.report",
    "write_pool": "autosft.pool",
}
__all__ = list(_API)


def __getattr__(name: str) -> Any:
    if name not in _API:
        raise AttributeError(f"module 'autosft' has no attribute {name!r}")
    return getattr(importlib.import_module(_API[name]), name)


def __dir__() -> list[str]:
    return __all__
