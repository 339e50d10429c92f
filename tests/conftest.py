"""Shared fixtures; see support/fixtures.py."""

pytest_plugins = ["support.fixtures"]
