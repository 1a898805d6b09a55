"""The meta graph: edges only. What happens at a node is in `nodes.py`.

    start -> (round 0) -----------------> register -> build -> guard -> execute -> record -> claim -> revise
    start -> observe -> analysts -> decide -> approve -> register -> ...                                |
               ^  `--- (a rival) ----^  |  ^------' (rejected)                                          |
               |                        |-> stop (nothing new to try)                                   |
               +----------------------------------------------------------------------------------------+

The saved graph state is a cursor that is deleted at every start: the journal and the artifacts say where the
campaign stands, and every node returns the record it finds instead of doing finished work again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosft.meta.state import State

if TYPE_CHECKING:
    from autosft.meta.nodes import Nodes

CURSOR = "cursor.sqlite"
# Nodes a round passes through; the recursion limit of the graph is a multiple of it.
STEPS_PER_ROUND = 24


def run_graph(nodes: Nodes, folder: Path, rounds: int) -> State:
    """Run a campaign's graph from where its journal stands to its end.

    Args:
        nodes: The node functions, bound to the campaign.
        folder: Campaign folder; the cursor is kept in it.
        rounds: Rounds planned, for the recursion limit.

    Returns:
        The last state; `stop` says why the campaign ended.
    """
    from langgraph.checkpoint.sqlite import SqliteSaver

    for stale in folder.glob(f"{CURSOR}*"):
        stale.unlink()
    with SqliteSaver.from_conn_string(str(folder / CURSOR)) as saver:
        graph = compile_graph(nodes, saver)
        config: Any = {
            "configurable": {"thread_id": "campaign"},
            "recursion_limit": STEPS_PER_ROUND * (rounds + 2),
            "max_concurrency": 4,
        }
        # The last recorded round, whose claim and revision may still be open; -1 before round 0.
        state: State = {"round": nodes.next_round() - 1, "stop": ""}
        found = graph.invoke(state, config, durability="sync")
        while "__interrupt__" in found:
            from langgraph.types import Command

            word = nodes.await_word(found["__interrupt__"][0].value)
            found = graph.invoke(Command(resume=word), config, durability="sync")
        return found  # type: ignore[no-any-return]


def compile_graph(nodes: Nodes, saver: Any) -> Any:
    """Wire the nodes together and compile."""
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Send

    graph = StateGraph(State)
    for name in (
        "observe",
        "analyst",
        "decide",
        "approve",
        "register",
        "build",
        "guard",
        "execute",
        "record",
        "claim",
        "revise",
    ):
        graph.add_node(name, getattr(nodes, name))

    def start(state: State) -> str:
        if nodes.pending_claim() is not None:
            return "claim"
        return "register" if state["round"] < 0 else "revise"

    def fan_out(state: State) -> list[Any]:
        names = nodes.analysts_of(state["round"])
        return [Send("analyst", {"round": state["round"], "name": name}) for name in names] or ["decide"]

    def after_decision(state: State) -> str:
        return "finish" if state["stop"] else "approve"

    def after_word(state: State) -> str:
        return "register" if state["recipe"] else "decide"

    def after_build(state: State) -> str:
        return "guard" if state["status"] == "ok" else "record"

    def after_guard(state: State) -> str:
        return "execute" if state["status"] == "ok" else "record"

    def after_revision(state: State) -> str:
        return "finish" if state["stop"] else "observe"

    graph.add_conditional_edges(START, start, {"register": "register", "revise": "revise", "claim": "claim"})
    graph.add_conditional_edges("observe", fan_out, ["analyst", "decide"])
    graph.add_edge("analyst", "decide")
    graph.add_conditional_edges("decide", after_decision, {"approve": "approve", "finish": END})
    graph.add_conditional_edges("approve", after_word, {"register": "register", "decide": "decide"})
    graph.add_edge("register", "build")
    graph.add_conditional_edges("build", after_build, {"guard": "guard", "record": "record"})
    graph.add_conditional_edges("guard", after_guard, {"execute": "execute", "record": "record"})
    graph.add_edge("execute", "record")
    graph.add_edge("record", "claim")
    graph.add_edge("claim", "revise")
    graph.add_conditional_edges("revise", after_revision, {"observe": "observe", "finish": END})
    return graph.compile(checkpointer=saver)
