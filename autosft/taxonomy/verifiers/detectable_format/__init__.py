"""Formats a program can find, as IFEval checks them."""
