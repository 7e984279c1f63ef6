"""The log of a training run: its events as JSON lines, how they are read back, and their plots."""
