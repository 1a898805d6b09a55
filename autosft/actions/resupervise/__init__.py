"""Replacing responses by better ones."""
