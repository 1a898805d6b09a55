"""Requirements of the embedded lab that IFEval does not have."""
