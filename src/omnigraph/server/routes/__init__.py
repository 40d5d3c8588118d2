"""One module per resource: its operations and what carries them out."""
