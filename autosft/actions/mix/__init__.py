"""Mixture weights: which rows are trained on how often. Weights are compiled from shares of tokens."""
