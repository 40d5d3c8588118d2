"""A policy at the handle: every call asks first, then goes on to the backend behind it."""
