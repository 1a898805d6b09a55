"""How many words, names or marks, as IFBench checks them."""
