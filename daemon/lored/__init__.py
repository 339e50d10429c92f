"""`lored`: the memory daemon. `lored.main` is the composition root."""

__version__ = "0.2.0"
