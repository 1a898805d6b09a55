"""Read-only tools of the analysts: typed, paged, bounded; they see the pool and the dev suites only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from autosft.errors import ProposalError
from autosft.llm import Kind, ToolSpec, shown
from autosft.subagents.conversation import Tool
from autosft.subagents.evidence import Sources
from autosft.subagents.rows import PLAIN, Checked, check_rows
from autosft.types import Requirement, Row

PAGE_ROWS = 10
_Offset = Annotated[int, Field(ge=0, le=10**9)]
_Limit = Annotated[int, Field(ge=1, le=PAGE_ROWS)]
_Text = Annotated[str, Field(min_length=1, max_length=200)]


class _Args(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Rows(_Args):
    leaf: _Text | None = None
    source: _Text | None = None
    verdict: Literal["any", "passing", "failing", "form_failing", "content_failing"] = "any"
    offset: _Offset = 0
    limit: _Limit = 5


class _Count(_Args):
    by: Literal["leaf", "source", "verdict", "leaf_and_verdict"] = "leaf"


class _Grep(_Args):
    text: _Text
    where: Literal["prompt", "response", "either"] = "either"
    offset: _Offset = 0
    limit: _Limit = 5


class _Verify(_Args):
    row: _Text
    verifier: _Text
    arguments: dict[str, Any] = Field(default_factory=dict)


class _Compare(_Args):
    a: Annotated[int, Field(ge=0)]
    b: Annotated[int, Field(ge=0)]


class _Answers(_Args):
    leaf: _Text
    failing_only: bool = True
    offset: _Offset = 0
    limit: _Limit = 5


class RowTools:
    """The tools, bound to what was measured about the parent round."""

    def __init__(self, sources: Sources) -> None:
        self._s = sources
        self._checked: list[Checked] | None = None

    def tools(self, names: Sequence[str]) -> tuple[Tool, ...]:
        """Return tools by name, in the given order."""
        return tuple(self._tool(name) for name in names)

    def _tool(self, name: str) -> Tool:
        schema, kind, description, run = _TOOLS[name]

        def checked(arguments: Mapping[str, Any]) -> Any:
            return run(self, read_args(schema, arguments))

        return Tool(ToolSpec(name, description, _plain_schema(schema)), kind, checked)

    @property
    def rows(self) -> list[Checked]:
        """Verdicts of the pool's rows, in order."""
        if self._checked is None:
            self._checked = check_rows(self._s.pool, self._s.ctx)
        return self._checked

    def sample_rows(self, args: _Rows) -> dict[str, Any]:
        """Return a page of rows."""
        found = [r.index for r in self.rows if _fits(r, args)]
        return self._page(found, args.offset, args.limit)

    def count_rows(self, args: _Count) -> dict[str, int]:
        """Count rows by a property."""
        keys: Mapping[str, Callable[[Checked], str]] = {
            "leaf": lambda r: r.leaf,
            "source": lambda r: r.source,
            "verdict": _verdict,
            "leaf_and_verdict": lambda r: f"{r.leaf}: {_verdict(r)}",
        }
        counts = Counter(shown(keys[args.by](r), 80) for r in self.rows)
        return dict(counts.most_common(80))

    def grep_rows(self, args: _Grep) -> dict[str, Any]:
        """Return a page of rows that contain a text."""
        needle = args.text.casefold()
        found = []
        for index, row in enumerate(self._s.pool.rows()):
            texts = {"prompt": [row.prompt], "response": [row.response]}.get(
                args.where, [row.prompt, row.response]
            )
            if any(needle in text.casefold() for text in texts):
                found.append(index)
        return self._page(found, args.offset, args.limit)

    def run_verifier(self, args: _Verify) -> dict[str, Any]:
        """Run a verifier on a row."""
        from autosft.taxonomy import verify

        index = {row_id: i for i, row_id in enumerate(self._s.pool.ids)}.get(args.row)
        if index is None:
            raise ProposalError(f"no row {args.row[:60]!r} in the pool", hint="take ids from sample_rows")
        row = self._s.pool.row(index)
        passed = verify(Requirement(args.verifier, args.arguments), row.prompt, row.response)
        return {"row": row.id, "verifier": args.verifier, "passes": passed}

    def compare_rounds(self, args: _Compare) -> dict[str, Any]:
        """Compare two recorded rounds."""
        rounds = {past.round: past for past in self._s.rounds}
        if args.a not in rounds or args.b not in rounds:
            raise ProposalError(f"no such round; recorded: {', '.join(map(str, rounds))}")
        a, b = rounds[args.a], rounds[args.b]
        moved = {
            leaf: round(b.leaf_scores[leaf] - s, 4)
            for leaf, s in a.leaf_scores.items()
            if leaf in b.leaf_scores
        }
        return {
            "scores": {str(a.round): a.score, str(b.round): b.score},
            "kinds": {str(a.round): list(a.kinds), str(b.round): list(b.kinds)},
            "leaf_change": dict(sorted(moved.items(), key=lambda item: item[1])),
        }

    def answers(self, args: _Answers) -> dict[str, Any]:
        """Return a page of the model's answers."""
        cases = failing_cases(self._s, args.leaf, only=args.failing_only)
        page = cases[args.offset : args.offset + args.limit]
        return {"n": len(cases), "offset": args.offset, "answers": page}

    def _page(self, found: list[int], offset: int, limit: int) -> dict[str, Any]:
        page = found[offset : offset + limit]
        return {"n": len(found), "offset": offset, "rows": [self.row(i) for i in page]}

    def row(self, index: int) -> dict[str, Any]:
        """Return a row as agents see it."""
        row, checked = self._s.pool.row(index), self.rows[index]
        return {**shown_row(row), "verdict": _verdict(checked)}


def shown_row(row: Row) -> dict[str, Any]:
    """Return a row's text as agents see it: bounded, harmless."""
    return {
        "id": row.id,
        "source": shown(row.source, 80),
        "leaf": row.leaf or PLAIN,
        "prompt": shown(row.prompt, 400),
        "response": shown(row.response, 400),
        "requirements": [shown(f"{r.id} {dict(r.kwargs)}", 160) for r in row.requirements[:4]],
    }


def failing_cases(sources: Sources, leaf: str, *, only: bool = True) -> list[dict[str, Any]]:
    """Return a leaf's dev items with the first seed's answers; failing ones only, where wanted."""
    if leaf not in sources.leaf_scores:
        raise ProposalError(f"no leaf {leaf[:60]!r}", hint=f"leaves: {', '.join(sources.leaf_scores)}")
    seed = min(sources.outputs, default=None)
    if seed is None:
        return []
    texts = {answer.item: answer for answer in reversed(sources.outputs[seed])}
    verdicts = {verdict.item: verdict for verdict in reversed(sources.verdicts[seed])}
    cases = []
    for item in sources.items:
        verdict = verdicts.get(item.id)
        if item.leaf != leaf or verdict is None or (only and verdict.strict):
            continue
        cases.append(
            {
                "prompt": shown(item.messages[-1].content, 300),
                "answer": shown(texts[item.id].text, 300),
                "form_ok": verdict.form,
                "content_ok": verdict.content,
                "cut_off": verdict.truncated,
            }
        )
    return cases


def _fits(row: Checked, args: _Rows) -> bool:
    verdicts = {
        "any": True,
        "passing": row.passes,
        "failing": not row.passes,
        "form_failing": not row.form,
        "content_failing": not row.content,
    }
    right_leaf = args.leaf is None or row.leaf == args.leaf
    return right_leaf and (args.source is None or row.source == args.source) and verdicts[args.verdict]


def _verdict(row: Checked) -> str:
    if not row.decided:
        return "undecided"
    return "passing" if row.passes else "form failing" if not row.form else "content failing"


def read_args(schema: type[BaseModel], arguments: Mapping[str, Any]) -> Any:
    """Check arguments or an answer against a schema.

    Raises:
        ProposalError: They do not fit; names the field and the offending text.
    """
    try:
        return schema.model_validate(dict(arguments))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "arguments"
        raise ProposalError(f"{first['msg']}: {shown(repr(first.get('input')), 120)}", where=where) from None
    except RecursionError:
        raise ProposalError("nested too deeply", where="arguments") from None


def _plain_schema(schema: type[BaseModel]) -> dict[str, Any]:
    made = schema.model_json_schema()
    made.pop("title", None)
    made.pop("description", None)
    for field in made.get("properties", {}).values():
        field.pop("title", None)
    return made


_TOOLS: Mapping[str, tuple[type[_Args], Kind, str, Callable[[RowTools, Any], Any]]] = {
    "sample_rows": (
        _Rows,
        "evidence",
        "Training rows by leaf, source and verdict, a page of up to 10.",
        RowTools.sample_rows,
    ),
    "count_rows": (
        _Count,
        "evidence",
        "Numbers of training rows by leaf, source or verdict.",
        RowTools.count_rows,
    ),
    "grep_rows": (_Grep, "evidence", "Training rows that contain a text, case ignored.", RowTools.grep_rows),
    "run_verifier": (
        _Verify,
        "evidence",
        "Run a verifier on a training row's response.",
        RowTools.run_verifier,
    ),
    "compare_rounds": (
        _Compare,
        "records",
        "What changed between two recorded rounds, by leaf.",
        RowTools.compare_rounds,
    ),
    "answers": (
        _Answers,
        "evaluation_output",
        "The model's answers to dev prompts of a leaf.",
        RowTools.answers,
    ),
}
