"""Connecting agents and editors to the memory, and undoing exactly that."""
