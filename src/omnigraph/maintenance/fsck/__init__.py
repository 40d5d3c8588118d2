"""The consistency check of a graph: follows every reference, changes nothing."""

from omnigraph.maintenance.fsck.check import CheckReport, check_graph
from omnigraph.maintenance.fsck.findings import Damage, FsckFinding

__all__ = ["CheckReport", "Damage", "FsckFinding", "check_graph"]
