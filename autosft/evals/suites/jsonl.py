"""A suite of one's own: a JSONL file of prompts with requirements.

A line holds `prompt` (or `messages`, the turns before the answer) and `requirements`, a list of
`{"id": ..., "kwargs": {...}}`; `id`, `leaf`, `reference` and `tags` are optional, other fields are ignored.
Lines in IFEval's own form (`key`, `prompt`, `instruction_id_list`, `kwargs`) are read as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from autosft.errors import AutosftError, SuiteError
from autosft.evals.suites.sealed import refuse_sealed
from autosft.evals.suites.suite import Suite
from autosft.taxonomy import Taxonomy
from autosft.taxonomy.verifiers.verdict import predicate
from autosft.types import CONTENT_PREFIXES, EvalItem, Message, Requirement

ROLES = ("system", "user", "assistant", "tool")
MAX_SHOWN = 5


def load(path: str | Path, name: str = "", taxonomy: str | Path | None = None) -> Suite:
    """Read a suite from a JSONL file.

    Args:
        path: The file. name: Suite name; the file's name without its ending where empty. taxonomy: Tree that
        gives items without `leaf` their leaf; where absent, the name of their first requirement.

    Raises:
        SuiteError: The file cannot be read, is empty, or lines are unusable; names the lines.
        TaxonomyError: The tree cannot be loaded.
    """
    path = Path(path)
    refuse_sealed(path)
    name = name or path.name.split(".")[0]
    tree = Taxonomy.load(taxonomy) if taxonomy is not None else None
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise SuiteError(f"cannot read the suite: {error.strerror}", where=str(path)) from None
    items, faults = [], []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = _read_item(orjson.loads(line), name, number, tree)
        except orjson.JSONDecodeError as error:
            faults.append(f"line {number}: not JSON: {error}")
            continue
        except AutosftError as error:
            faults.append(f"line {number}: {error}")
            continue
        if item.id in seen:
            faults.append(f"line {number}: id {item.id!r} is that of line {seen[item.id]}")
        seen.setdefault(item.id, number)
        items.append(item)
    if faults:
        more = f" (and {len(faults) - MAX_SHOWN} more lines)" if len(faults) > MAX_SHOWN else ""
        raise SuiteError(
            "; ".join(faults[:MAX_SHOWN]) + more, where=str(path), hint="mend or remove these lines"
        )
    if not items:
        raise SuiteError(
            "the file holds no line", where=str(path), hint='{"prompt": ..., "requirements": [...]}'
        )
    return Suite(name, tuple(items))


def _read_item(data: Any, suite: str, number: int, tree: Taxonomy | None) -> EvalItem:
    if not isinstance(data, Mapping):
        raise SuiteError("a line must be a JSON object")
    requirements = _read_requirements(data)
    for requirement in requirements:
        predicate(requirement.id, requirement.kwargs)
    leaf = data.get("leaf")
    if leaf is None:
        form = [r for r in requirements if not r.id.startswith(CONTENT_PREFIXES)]
        own = (form or list(requirements))[0].id.split(":")[-1]
        leaf = (tree.leaf_of(requirements) if tree else None) or own
    reference, tags = data.get("reference"), data.get("tags") or {}
    if not isinstance(leaf, str) or not isinstance(reference, str | None):
        raise SuiteError("'leaf' and 'reference' must be texts")
    if not isinstance(tags, Mapping):
        raise SuiteError("'tags' must be an object")
    return EvalItem(
        id=str(data.get("id", data.get("key", number))),
        suite=suite,
        messages=_read_messages(data),
        requirements=requirements,
        leaf=leaf,
        tags={str(key): str(value) for key, value in tags.items()},
        reference=reference,
    )


def _read_messages(data: Mapping[str, Any]) -> tuple[Message, ...]:
    prompt, turns = data.get("prompt"), data.get("messages")
    if turns is None:
        if not isinstance(prompt, str) or not prompt.strip():
            raise SuiteError("needs 'prompt', a text, or 'messages'")
        return (Message("user", prompt),)
    if not isinstance(turns, list) or not turns:
        raise SuiteError("'messages' must be a list of turns")
    for turn in turns:
        if (
            not isinstance(turn, Mapping)
            or turn.get("role") not in ROLES
            or not isinstance(turn.get("content"), str)
        ):
            raise SuiteError(
                f"not a turn: {str(turn)[:80]}", hint=f"role (one of {', '.join(ROLES)}) and content"
            )
    if turns[-1]["role"] not in ("user", "tool"):
        raise SuiteError("the last turn must be the user's: generation answers it")
    return tuple(Message(turn["role"], turn["content"]) for turn in turns)


def _read_requirements(data: Mapping[str, Any]) -> tuple[Requirement, ...]:
    listed: Any = data.get("requirements")
    if listed is None and isinstance(data.get("instruction_id_list"), list):
        ids, kwargs = data["instruction_id_list"], data.get("kwargs") or []
        if not isinstance(kwargs, list) or len(kwargs) != len(ids):
            raise SuiteError(f"{len(ids)} in 'instruction_id_list' need as many 'kwargs'")
        listed = [{"id": key, "kwargs": given} for key, given in zip(ids, kwargs, strict=True)]
    if not isinstance(listed, list) or not listed:
        # Without one, any answer would pass: more often a misspelt field than a wish.
        raise SuiteError(
            "needs 'requirements', a list of one or more", hint='[{"id": "punctuation:no_comma"}]'
        )
    requirements = []
    for entry in listed:
        if isinstance(entry, str):
            requirements.append(Requirement(entry))
            continue
        given = (entry.get("kwargs") or {}) if isinstance(entry, Mapping) else None
        if (
            not isinstance(entry, Mapping)
            or not isinstance(entry.get("id"), str)
            or not isinstance(given, Mapping)
        ):
            raise SuiteError(f"not a requirement: {str(entry)[:80]}", hint='{"id": ..., "kwargs": {...}}')
        # IFEval pads arguments with nulls; they mean nothing and are not kept.
        kept = {key: value for key, value in given.items() if value is not None}
        requirements.append(Requirement(entry["id"], kept))
    return tuple(requirements)
