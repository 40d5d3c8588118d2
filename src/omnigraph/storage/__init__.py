"""Bytes: control objects, Lance tables, and where both are kept."""

import os

# Lance writes its warnings to stderr by itself; what matters to users is raised as an error.
os.environ.setdefault("LANCE_LOG", "error")
