"""Punctuation, as IFEval checks it."""
