"""Terminal: printed text and tables, progress bars, and values in one line."""
