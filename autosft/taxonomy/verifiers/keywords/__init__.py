"""Words and letters, as IFEval checks them."""
