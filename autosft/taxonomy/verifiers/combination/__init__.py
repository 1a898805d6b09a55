"""Responses made of parts, as IFEval checks them."""
