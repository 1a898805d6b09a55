"""Layout, quotes and brackets, as IFBench checks them."""
