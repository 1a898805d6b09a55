"""Repeating the request, as IFBench checks it."""
