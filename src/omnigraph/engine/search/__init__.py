"""Text and vector search on one version of a type.

Results are computed from the stored values and do not depend on whether an index exists or is up to
date, except with ``nearest="indexed"``.
"""
