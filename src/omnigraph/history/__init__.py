"""History: changes of commits, the change feed, histories of entities, blame and the log.

Read-only. Built on the timeline of a branch, the difference between two snapshots, and tables
pinned at their versions. No state is kept per reader.
"""
