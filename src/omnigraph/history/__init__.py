"""Questions about the past: changes of commits, the change feed, entities through time, the log.

Everything here reads. It rests on three things below it: the timeline of a branch, the difference
between two snapshots, and tables pinned at their versions. Nothing about a reader is remembered.
"""
