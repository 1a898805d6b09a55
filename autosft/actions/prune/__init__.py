"""Dropping rows."""
