"""Mending rows: minimal edits of responses, rewording of prompts."""
