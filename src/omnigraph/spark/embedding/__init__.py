"""Backfill of the vectors of ``@embed`` properties, on executors.

One pinned snapshot determines the work: texts without a vector, and texts that changed after their
vector was computed. Tasks embed batches of texts and write the vectors to the staging area of the
graph, where a repeated run finds them; the driver commits. A vector is committed only to a node
that still has its text.
"""
