"""Proportions of sentences and words, as IFBench checks them."""
