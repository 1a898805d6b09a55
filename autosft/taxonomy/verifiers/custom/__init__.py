"""Single tasks with a format of their own, as IFBench checks them."""
