"""Tools: what is done with whole datasets."""
