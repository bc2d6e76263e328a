"""Commands: one file each, loaded when the command runs. What only one command uses has a private file here."""
