"""Filling in the vectors of ``@embed`` properties, at any size, on executors.

What needs a vector is found in one pinned snapshot: texts without a vector, and texts that changed
after their vector was made. Tasks embed some texts each and leave the vectors in the staging area
of the graph, where a run that is repeated finds them; the driver commits. A vector is written only
to a node that still has the text it was made of.
"""
