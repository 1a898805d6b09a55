"""Lengths, as IFEval checks them."""
