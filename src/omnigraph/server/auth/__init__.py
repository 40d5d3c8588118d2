"""Who is calling, and what that caller may do."""
