"""Writing new rows."""
