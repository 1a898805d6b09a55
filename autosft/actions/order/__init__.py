"""Positions of rows in training, as fractions of the token budget."""
