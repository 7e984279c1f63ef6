"""Reading on many machines: workers of a Ray cluster parse the data, this process learns it (docs/cluster.md)."""
