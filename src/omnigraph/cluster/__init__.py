"""Graphs, stored queries and policies declared in files: planned, approved and applied."""
