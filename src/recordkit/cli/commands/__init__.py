"""Commands: one file each, loaded when the command runs, with private files for parts of a single command."""
