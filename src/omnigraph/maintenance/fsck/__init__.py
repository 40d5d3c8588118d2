"""The check of a whole graph: every reference is followed, nothing is changed."""

from omnigraph.maintenance.fsck.check import CheckReport, check_graph
from omnigraph.maintenance.fsck.findings import Damage, Finding

__all__ = ["CheckReport", "Damage", "Finding", "check_graph"]
