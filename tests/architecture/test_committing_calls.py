"""Only ``storage/lance/tables.py`` may move a table's HEAD (W-1); no other module tries."""

from __future__ import annotations

import sys
from pathlib import Path

import lance
import pytest
from tests.architecture.committing_calls import (
    BORROWS_MUTABLY,
    LANCE_ONLY,
    ON_A_DATASET,
    calls_on_shared_datasets,
    committing_calls,
    modules,
)

SOURCE = Path(__file__).parents[2] / "src" / "omnigraph"
ALLOWED = SOURCE / "storage" / "lance" / "tables.py"


def test_only_one_module_commits_to_lance() -> None:
    found = {
        f"{path.relative_to(SOURCE)}:{finding.line}": finding.what
        for path in modules(SOURCE)
        if path != ALLOWED
        for finding in committing_calls(path.read_text())
    }
    assert found == {}, "stage with storage/lance/staging/rows.py and commit through TableStore"


def test_the_one_module_makes_three_kinds_of_commits() -> None:
    """Creating, committing a staged write, forking. A fourth deserves a look."""
    found = [finding.what for finding in committing_calls(ALLOWED.read_text())]
    assert sorted(found) == ["LanceDataset.commit", "LanceDataset.commit", "dataset.create_branch"]


def test_no_shared_dataset_object_is_borrowed_mutably() -> None:
    found = {
        f"{path.relative_to(SOURCE)}:{finding.line}": finding.what
        for path in modules(SOURCE)
        for finding in calls_on_shared_datasets(path.read_text())
    }
    assert found == {}, "threads share the handles of tables: use PinnedTable.private_dataset()"


ON_SHARED = {
    "fork": "def f(t): t.dataset.create_branch('x')",
    "transaction": "def f(t): return t.dataset.read_transaction(1)",
    "transactions": "def f(t):\n    d = t.dataset\n    return d.get_transactions()",
    "index": "def f(t): return t.dataset.create_index_uncommitted('id', 'BTREE')",
    "commit": "def f(t): LanceDataset.commit(t.dataset, transaction)",
    "by another way": "def f(t): lance.LanceDataset.commit(t.dataset, transaction)",
    "once private": "d = t.private_dataset()\nd = t.dataset\nd.create_branch('x')",
}
ON_PRIVATE = {
    "fork": "def f(t): t.private_dataset().create_branch('x')",
    "a variable": "def f(t):\n    d = t.private_dataset()\n    return d.read_transaction(1)",
    "commit": "def f(t): LanceDataset.commit(t.private_dataset(), transaction)",
    "a new table": "def f(uri): LanceDataset.commit(uri, transaction)",
    "reading": "def f(t): return t.dataset.count_rows()",
    "a branch of ours": "def f(graph): graph.branches.create('x')",
}


@pytest.mark.parametrize("name", ON_SHARED)
def test_a_planted_call_on_a_shared_object_is_found(name: str) -> None:
    assert calls_on_shared_datasets(ON_SHARED[name]), ON_SHARED[name]


@pytest.mark.parametrize("name", ON_PRIVATE)
def test_a_call_on_a_private_object_is_left_alone(name: str) -> None:
    assert calls_on_shared_datasets(ON_PRIVATE[name]) == []


PLANTED = {
    "commit": "from lance import LanceDataset\nLanceDataset.commit(uri, transaction)",
    "commit by another way": "import lance\nlance.LanceDataset.commit(uri, transaction)",
    "commit_batch": "LanceDataset.commit_batch(uri, transactions)",
    "write_dataset": "import lance\nlance.write_dataset(rows, uri)",
    "write_dataset by name": "from lance import write_dataset\nwrite_dataset(rows, uri)",
    "an alias": "from lance import write_dataset as w\nw(rows, uri)",
    "create_branch": "def f(table): return table.dataset.create_branch('x')",
    "restore": "def f(table): table.dataset.checkout_version(3).restore()",
    "merge_insert": "def f(t): t.merge_insert('id').when_matched_update_all().execute(rows)",
    "delete": "def f(table): table.dataset.delete('true')",
    "update": "def f(self): self._ds.update({'a': '1'})",
    "insert": "import lance\nlance.dataset(uri).insert(rows)",
    "a variable": "def f(table):\n    x = table.dataset\n    y = x\n    y.delete('true')",
    "a parameter": "def f(x: lance.LanceDataset): x.update({'a': '1'})",
    "an opened dataset": "import lance\nx = lance.dataset(uri)\nx.restore()",
    "optimize": "def f(table): table.dataset.optimize.compact_files()",
    "optimize kept": "def f(table):\n    o = table.dataset.optimize",
    "optimize_indices": "def f(optimizer): optimizer.optimize_indices()",
    "native compaction": "from lance.optimize import Compaction\nCompaction.commit(x, results)",
    "one-shot compaction": "from lance.optimize import Compaction\nCompaction.execute(x, {})",
    "cleanup": "def f(t): t.cleanup_old_versions(older_than=0)",
    "scalar index": "def f(t): t.create_scalar_index('id', 'BTREE')",
    "vector index": "def f(table): table.dataset.create_index('v', 'IVF_PQ')",
    "drop index": "def f(t): t.drop_index('x')",
    "add columns": "def f(table): table.dataset.add_columns({'a': '1'})",
    "drop columns": "def f(table): table.dataset.drop_columns(['a'])",
    "alter columns": "def f(t): t.alter_columns({'path': 'a'})",
    "config": "def f(t): t.update_config({'a': 'b'})",
    "tags": "def f(table): table.dataset.tags.create('x', 1)",
    "tags kept": "def f(table):\n    t = table.dataset.tags\n    t.delete('x')",
    "branches": "def f(table): table.dataset.branches.delete('x')",
    "append": "from lance import LanceOperation\nLanceOperation.Append(fragments)",
    "getattr": "def f(t): getattr(t, 'commit')(x)",
    "newest": "def f(t): t.checkout_latest()",
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_found(name: str) -> None:
    assert committing_calls(PLANTED[name]), PLANTED[name]


INNOCENT = {
    "our own commit": "def f(store, staged): return store.commit(staged)",
    "our own transaction": "def f(self, prepared): return self._transaction.commit(prepared)",
    "our own branch": "def f(graph): return graph.branches.create('x')",
    "our own batch": "def f(w): w.insert('T', {}), w.update('T', 'x', {}), w.delete('T', 'x')",
    "staging": "def f(t): return t.dataset.create_index_uncommitted('id', 'BTREE')",
    "deleting at known places": "def f(t): return t.dataset.get_fragment(0).delete_rows([1])",
    "a dictionary": "known = {}\nknown.update({'a': 1})",
    "objects": "def f(self): self._objects.delete('x')",
    "an operation": "from lance import LanceOperation\nLanceOperation.Update(new_fragments=[])",
    "a compaction plan": "from lance.optimize import Compaction\nCompaction.plan(t.dataset, {})",
    "reading": "def f(t): return t.dataset.scanner().to_table(), t.dataset.count_rows()",
    "a task": "def f(task, table): return task.execute(table.dataset)",
    "a function of ours": "def restore(x): return x\nrestore(1)",
}


@pytest.mark.parametrize("name", INNOCENT)
def test_innocent_code_is_left_alone(name: str) -> None:
    assert committing_calls(INNOCENT[name]) == []


def test_the_names_are_names_of_lance() -> None:
    """A list of names that Lance no longer has guards nothing."""
    inside = sys.modules["lance.dataset"]
    parts = [lance, lance.LanceDataset, inside.DatasetOptimizer, inside.Tags, inside.Branches]
    parts += [inside.MergeInsertBuilder, inside.AlterColumn]
    known = {name for part in parts for name in dir(part)}
    assert (LANCE_ONLY | ON_A_DATASET) - known == set()


def test_no_method_of_a_dataset_is_forgotten() -> None:
    """Every public method of Lance's dataset is judged: it commits, or it is known not to."""
    public = {name for name in dir(lance.LanceDataset) if not name.startswith("_")}
    unjudged = public - LANCE_ONLY - ON_A_DATASET - BORROWS_MUTABLY - HARMLESS
    assert unjudged == set(), "does each of these commit? Then it belongs into committing_calls.py"


HARMLESS = frozenset(
    [
        "all_files",
        "base_paths",
        "branches",
        "centroids",
        "checkout_version",
        "config",
        "count_rows",
        "data_storage_version",
        "delta",
        "describe_indices",
        "explain_cleanup_old_versions",
        "filter",
        "fragment_ids",
        "get_fragment",
        "get_fragments",
        "get_ivf_model",
        "get_version",
        "has_index",
        "has_stable_row_ids",
        "head",
        "index_statistics",
        "initial_storage_options",
        "io_stats_incremental",
        "io_stats_snapshot",
        "join",
        "join_asof",
        "lance_schema",
        "latest_storage_options",
        "latest_version",
        "list_indices",
        "max_field_id",
        "mem_wal_index_details",
        "merge_existing_index_segments",
        "metadata",
        "new_file_session",
        "partition_expression",
        "prewarm_index",
        "read_blob_ranges",
        "read_blobs",
        "remap_row_addrs",
        "sample",
        "scanner",
        "schema",
        "schema_metadata",
        "session",
        "slice",
        "sort_by",
        "sql",
        "stats",
        "storage_options_accessor",
        "tags",
        "take",
        "take_blobs",
        "to_batches",
        "to_pandas",
        "to_table",
        "tracked_files",
        "uri",
        "validate",
        "version",
        "version_refs",
        "versions",
    ]
)
