"""The embedded default: a tiny base model, a pool with planted defects, and a suite, all of one world."""
