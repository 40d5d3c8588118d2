"""Storage: control objects, Lance tables, and their locations."""

import os

# Lance prints warnings to stderr on its own; whatever concerns a user is raised as an error.
os.environ.setdefault("LANCE_LOG", "error")
