"""Omnigraph: a graph lakehouse in Python."""
