"""The HTTP server: routes over the handle, authentication, limits, observability."""
