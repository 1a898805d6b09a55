"""Content a program can find, as IFEval checks it."""
