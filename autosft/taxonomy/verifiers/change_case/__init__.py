"""Letter case, as IFEval checks it."""
