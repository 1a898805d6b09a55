"""Conditions on every word or on single words, as IFBench checks them."""
