"""The method table, a file per part of the protocol."""
