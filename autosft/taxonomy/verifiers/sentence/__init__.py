"""Conditions on the sequence of sentences, as IFBench checks them."""
