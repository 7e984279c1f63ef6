"""The log of a training run: its events as JSON lines, the run they describe, and its plots."""
