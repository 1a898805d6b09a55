"""Checks without the known faults of the official ones; `REPAIRS` names the id each stands in for.

The official semantics stay the default; `evals.repaired` scores the same answers with these beside.
"""
