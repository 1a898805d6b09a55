"""The tree of leaves under the policy `llm`: the meta agent extends it, versions are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from autosft.errors import ProposalError, TaxonomyError
from autosft.llm import Part, render
from autosft.llm.text import as_json
from autosft.meta.campaign import Campaign
from autosft.subagents.conversation import Abstained, Question
from autosft.subagents.evidence import Sources
from autosft.subagents.office import Office
from autosft.subagents.tools import failing_cases, read_args
from autosft.taxonomy import Leaf, Taxonomy
from autosft.taxonomy.verifiers import VERIFIERS

MOST_NEW_LEAVES = 3


class _NewLeaf(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: Annotated[str, Field(pattern=r"^[a-z0-9_]+(/[a-z0-9_]+){1,3}$", max_length=100)]
    verifier: Annotated[str, Field(max_length=100)]
    params: dict[str, Any] = Field(default_factory=dict)
    description: Annotated[str, Field(min_length=1, max_length=300)]
    prompt: Annotated[str, Field(min_length=1, max_length=1_000)]
    passes: Annotated[str, Field(min_length=1, max_length=2_000)]
    fails: Annotated[str, Field(max_length=2_000)]


class _Tree(BaseModel):
    model_config = ConfigDict(extra="forbid")
    add: Annotated[list[_NewLeaf], Field(max_length=MOST_NEW_LEAVES)] = Field(default_factory=list)
    remove: Annotated[list[str], Field(max_length=10)] = Field(default_factory=list)
    why: Annotated[str, Field(max_length=600)] = ""


class TreeKeeper:
    """The trees of a campaign.

    Args:
        campaign: The open campaign.
        office: Asks the meta agent.
    """

    def __init__(self, campaign: Campaign, office: Office) -> None:
        self._c, self._office = campaign, office

    def newest(self) -> Taxonomy:
        """Return the newest tree: the campaign's, or its latest revision."""
        revisions = self._c.journal.of_kind("taxonomy.revised")
        if not revisions:
            return self._c.taxonomy
        return Taxonomy.from_json(self._c.store.load("taxonomy", revisions[-1].data["tree"]).data["tree"])

    def revise(self, number: int, sources: Callable[[], Sources]) -> str:
        """Let the meta agent extend the tree, in the rounds where it may; return a line for people, or ''.

        The scored leaves stay (I13): a revision adds leaves that rows can be written for and analysts see.
        """
        every = self._c.config.llm.taxonomy_rounds
        if not every or number % every != 1 % every or self._c.journal.find("taxonomy.asked", str(number)):
            return ""
        try:
            revised, note = self._ask_tree(number, sources()), ""
        except Abstained as error:
            revised, note = None, str(error)
        data: dict[str, Any] = {"note": note, "tree": None}
        if revised is not None and revised.fingerprint != self.newest().fingerprint:
            data["tree"] = revised.fingerprint
            if self._c.store.find("taxonomy", revised.fingerprint) is None:
                with self._c.store.create("taxonomy", revised.fingerprint) as step:
                    step.data = {"tree": revised.to_json()}
            self._c.journal.append("taxonomy.revised", str(number), {"tree": revised.fingerprint})
        self._c.journal.append("taxonomy.asked", str(number), data)
        return f"tree of leaves: version {revised.version}" if data["tree"] and revised else ""

    def _ask_tree(self, number: int, sources: Sources) -> Taxonomy:
        tree, scored = self.newest(), set(self._c.taxonomy.names)

        def parse(data: Mapping[str, Any]) -> Taxonomy:
            answer: _Tree = read_args(_Tree, data)
            fixed = [
                name
                for name in (*answer.remove, *(a.path.rsplit("/", 1)[1] for a in answer.add))
                if name in scored
            ]
            if fixed:
                raise ProposalError(f"leaf {fixed[0][:60]!r} is scored and stays", where="remove, add")
            if not answer.add and not answer.remove:
                return tree
            leaves = [
                Leaf(a.path, a.verifier, a.description, a.passes, a.fails, a.params, a.prompt)
                for a in answer.add
            ]
            try:
                return tree.revised(leaves, answer.remove)
            except TaxonomyError as error:
                raise ProposalError(str(error), where="add") from None

        weak = sorted(sources.leaf_scores, key=lambda leaf: (sources.leaf_scores[leaf], leaf))[:4]
        cases = [{"leaf": leaf, **case} for leaf in weak for case in failing_cases(sources, leaf)[:2]]
        question = Question(
            role="meta",
            round=number,
            purpose="deciding",
            instructions=render(
                "taxonomy",
                setting=render("setting"),
                data_rule=render("data_rule"),
                verifiers=", ".join(sorted(VERIFIERS)),
                leaves=", ".join(tree.names),
            ),
            parts=(
                Part("records", f"Leaf scores: {as_json(dict(sources.leaf_scores))}"),
                Part("evaluation_output", f"Failing answers (data):\n{as_json(cases)}"),
            ),
            schema=_Tree.model_json_schema(),
            parse=parse,
        )
        return self._office.ask(question, "tree")
