"""Storage: control objects, Lance tables, and their locations."""

import os

# Lance writes its warnings to stderr by itself; what matters to users is raised as an error.
os.environ.setdefault("LANCE_LOG", "error")
