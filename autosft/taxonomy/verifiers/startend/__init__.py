"""How a response begins and ends, as IFEval checks it."""
