"""Language of the response, as IFEval checks it."""
