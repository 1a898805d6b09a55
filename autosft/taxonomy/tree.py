"""The tree of leaves: program-decidable requirements under branches, versioned, checked when it is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from autosft.errors import TaxonomyError, VerifierError
from autosft.identity import fingerprint
from autosft.taxonomy.compose import verifier_ids
from autosft.taxonomy.verifiers import check_requirement
from autosft.types import CONTENT_PREFIXES, Requirement

SHIPPED = Path(__file__).with_name("leaves.yaml")
LEAF_FIELDS = ("verifier", "description", "passes", "fails", "params", "prompt", "pinned")
DEFAULT_PROMPT = "Tell me about the fox."


@dataclass(frozen=True, slots=True)
class Leaf:
    """A requirement that a program decides, as the tree describes it.

    Attributes:
        path: `branch/.../name`. verifier: Verifier id, or `compose:...`. description: What it demands, for
        people and agents. passes: A response that meets it with `params`. fails: A response that does not.
        params: Default arguments. prompt: The prompt both examples answer. pinned: Names of arguments that a
        row's requirement must share with `params` to belong to this leaf; the
            others may differ.
    """

    path: str
    verifier: str
    description: str
    passes: str
    fails: str
    params: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = DEFAULT_PROMPT
    pinned: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Last part of the path; unique in a tree."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def branch(self) -> str:
        """The path without the name."""
        return self.path.rpartition("/")[0]

    @property
    def requirement(self) -> Requirement:
        """The leaf's requirement with its default arguments."""
        return Requirement(self.verifier, dict(self.params))

    def ids(self) -> frozenset[str]:
        """Return the verifier ids the leaf uses, those inside a composition too."""
        return frozenset(verifier_ids(self.requirement))

    def matches(self, requirement: Requirement) -> bool:
        """Return whether a row's requirement is this leaf's, whatever its unpinned arguments."""
        if requirement.id != self.verifier:
            return False
        if self.verifier.startswith("compose:"):
            return frozenset(verifier_ids(requirement)) == self.ids()
        return all(requirement.kwargs.get(name) == self.params.get(name) for name in self.pinned)

    def check(self) -> None:
        """Run both examples.

        Raises:
            TaxonomyError: The verifier is unknown, its arguments do not fit, or it does not tell the two
            examples
                apart; names the leaf.
        """
        where = f"leaf {self.path}"
        for name in self.pinned:
            if name not in self.params:
                raise TaxonomyError(f"pinned argument {name!r} is not in params", where=where)
        for label, response, wanted in (("passing", self.passes, True), ("failing", self.fails, False)):
            try:
                strict, _ = check_requirement(self.verifier, self.params, self.prompt, response)
            except VerifierError as error:
                raise TaxonomyError(str(error), where=where) from None
            if strict is not wanted:
                verdict = "passes" if strict else "fails"
                what = f"its {label} example {verdict} {self.verifier} with {dict(self.params)}: {response!r}"
                raise TaxonomyError(
                    what, where=where, hint="a leaf must be decidable; correct the example or params"
                )


@dataclass(frozen=True)
class Taxonomy:
    """A versioned tree of leaves; every leaf has been checked.

    Attributes:
        name: Tree name.
        version: Counts revisions from 1.
        leaves: Leaves in the tree's order; names are unique.
        parent: Fingerprint of the version it was revised from, or None.
    """

    name: str
    version: int
    leaves: tuple[Leaf, ...]
    parent: str | None = None

    def __post_init__(self) -> None:
        """Check names, then every leaf's examples."""
        if not self.leaves:
            raise TaxonomyError("the tree has no leaf", where=f"taxonomy {self.name}")
        seen: dict[str, str] = {}
        for leaf in self.leaves:
            if leaf.name in seen:
                what = f"two leaves are named {leaf.name!r}: {seen[leaf.name]} and {leaf.path}"
                raise TaxonomyError(what, where=f"taxonomy {self.name}", hint="rename one")
            if not leaf.name or leaf.path != leaf.path.strip("/"):
                raise TaxonomyError(
                    f"bad leaf path {leaf.path!r}", where=f"taxonomy {self.name}", hint="branch/name"
                )
            seen[leaf.name] = leaf.path
            leaf.check()

    @classmethod
    def load(cls, source: str | Path) -> Taxonomy:
        """Load a shipped tree (`default`, `lab`, `ifeval`, `ifbench`, `mbpp_plus`) or one from a YAML file.

        A file holds `name`, `version` and `leaves`, a mapping from path to `verifier`, `description`,
        `passes`, `fails` and, where wanted, `params`, `prompt`, `pinned`.

        Raises:
            TaxonomyError: It cannot be found or read, or a leaf cannot be decided; names the leaf.
        """
        import yaml  # type: ignore[import-untyped]

        shipped = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
        if isinstance(source, str) and source in shipped:
            tree = _united(shipped, source)
            return cls.from_json({"name": source, **tree}, where=f"taxonomy {source}")
        path = Path(source)
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            hint = f"shipped trees: {', '.join(shipped)}"
            raise TaxonomyError(f"no such taxonomy: {error}", where=str(source), hint=hint) from None
        except yaml.YAMLError as error:
            raise TaxonomyError(f"not YAML: {str(error).splitlines()[0]}", where=str(source)) from None
        return cls.from_json(data, where=str(source))

    @classmethod
    def from_json(cls, data: Any, *, where: str = "taxonomy") -> Taxonomy:
        """Read what `to_json` wrote, checking every leaf.

        Raises:
            TaxonomyError: A field is missing, unknown or of the wrong kind, or a leaf cannot be decided.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("leaves"), Mapping):
            raise TaxonomyError("needs name, version and leaves (path -> leaf)", where=where)
        leaves = tuple(_read_leaf(str(path), leaf, where) for path, leaf in data["leaves"].items())
        version, parent = data.get("version", 1), data.get("parent")
        if not isinstance(version, int) or version < 1:
            raise TaxonomyError(f"version {version!r} is not a whole number from 1", where=where)
        return cls(
            str(data.get("name", "")) or "unnamed", version, leaves, None if parent is None else str(parent)
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; `Taxonomy.from_json` reads it back."""
        leaves = {
            leaf.path: {
                "verifier": leaf.verifier,
                "description": leaf.description,
                "passes": leaf.passes,
                "fails": leaf.fails,
                "params": dict(leaf.params),
                "prompt": leaf.prompt,
                "pinned": list(leaf.pinned),
            }
            for leaf in self.leaves
        }
        return {"name": self.name, "version": self.version, "parent": self.parent, "leaves": leaves}

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the tree's JSON."""
        # Canonical JSON sorts keys; the order of leaves is part of a tree, so it is listed beside them.
        return fingerprint([self.to_json(), [leaf.path for leaf in self.leaves]])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Leaf names in the tree's order."""
        return tuple(leaf.name for leaf in self.leaves)

    @cached_property
    def _by_name(self) -> dict[str, Leaf]:
        return {leaf.name: leaf for leaf in self.leaves}

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def leaf(self, name: str) -> Leaf:
        """Return a leaf by name.

        Raises:
            TaxonomyError: The tree has no such leaf.
        """
        if name not in self._by_name:
            raise TaxonomyError(
                f"no leaf {name!r}", where=f"taxonomy {self.name}", hint=f"has {', '.join(self.names)}"
            )
        return self._by_name[name]

    def leaves_of(self, requirements: Sequence[Requirement]) -> tuple[str, ...]:
        """Return the names of all leaves that requirements exercise, in the tree's order."""
        return tuple(leaf.name for leaf in self.leaves if any(leaf.matches(r) for r in requirements))

    def leaf_of(self, requirements: Sequence[Requirement]) -> str | None:
        """Return the one leaf that requirements belong to, or None.

        The first form requirement that a leaf matches decides, then content requirements
        (`CONTENT_PREFIXES`): a row that must be lower-case *and* state a fact belongs to the lower-case leaf.
        Of several leaves that match a requirement, the one with the most pinned arguments is taken, then the
        tree's first.
        """
        ordered = sorted(requirements, key=lambda r: r.id.startswith(CONTENT_PREFIXES))
        for requirement in ordered:
            matching = [leaf for leaf in self.leaves if leaf.matches(requirement)]
            if matching:
                return max(matching, key=lambda leaf: len(leaf.pinned)).name
        return None

    def revised(self, add: Iterable[Leaf] = (), remove: Iterable[str] = ()) -> Taxonomy:
        """Return the next version: leaves removed by name, then added (or, by equal name, replaced in place).

        Raises:
            TaxonomyError: A leaf to remove is not there, or a leaf to add cannot be decided.
        """
        gone = {self.leaf(name).name for name in remove}
        kept = {leaf.name: leaf for leaf in self.leaves if leaf.name not in gone}
        kept.update({leaf.name: leaf for leaf in add})
        return Taxonomy(self.name, self.version + 1, tuple(kept.values()), self.fingerprint)


def _united(shipped: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a shipped tree's data; one that unites others takes each verifier's first leaf."""
    tree = dict(shipped[name])
    parts, without = tree.pop("unites", ()), set(tree.pop("without", ()))
    taken = {leaf["verifier"] for leaf in tree.get("leaves", {}).values()}
    leaves = dict(tree.get("leaves", {}))
    for part in parts:
        for path, leaf in shipped[part]["leaves"].items():
            if leaf["verifier"] not in taken | without:
                leaves[path] = leaf
        taken |= {leaf["verifier"] for leaf in shipped[part]["leaves"].values()}
    return {**tree, "leaves": leaves}


def _read_leaf(path: str, data: Any, where: str) -> Leaf:
    place = f"{where}: leaf {path}"
    if not isinstance(data, Mapping):
        raise TaxonomyError("a leaf is a mapping", where=place, hint=f"fields: {', '.join(LEAF_FIELDS)}")
    unknown = [name for name in data if name not in LEAF_FIELDS]
    missing = [name for name in LEAF_FIELDS[:4] if not isinstance(data.get(name), str)]
    if unknown or missing:
        what = f"unknown field {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing or not a text"
        raise TaxonomyError(what, where=place, hint=f"fields: {', '.join(LEAF_FIELDS)}")
    params, pinned = data.get("params") or {}, data.get("pinned") or ()
    if not isinstance(params, Mapping) or not isinstance(pinned, list | tuple):
        raise TaxonomyError("params is a mapping and pinned a list", where=place)
    return Leaf(
        path=path,
        verifier=data["verifier"],
        description=data["description"],
        passes=data["passes"],
        fails=data["fails"],
        params=dict(params),
        prompt=str(data.get("prompt") or DEFAULT_PROMPT),
        pinned=tuple(str(name) for name in pinned),
    )
