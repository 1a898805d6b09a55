"""Correct final answers."""
