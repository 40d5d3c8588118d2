"""Every error a user can meet, as one tree.

    OmnigraphError
    ├── InvalidInput                 the request itself is wrong; repeating it cannot help
    │   ├── LanguageError            schema or query text that cannot be used
    │   │   ├── SourceError          with every finding and its place (in ``omnigraph.lang.syntax``)
    │   │   └── ParameterError       values that do not fit the parameters of a query
    │   ├── InvalidValue             a value that does not fit its declared type
    │   ├── InvalidData              records that cannot be read or do not fit, all of them listed
    │   │   └── ConstraintViolation  readable data that breaks the schema's constraints
    │   ├── IdempotencyMismatch      an idempotency key used again for a different request
    │   ├── ExternalBlobDenied       a reference to bytes outside that this graph does not allow
    │   ├── BlobRangeInvalid         a range that lies outside the blob
    │   ├── UnsupportedLocation      a URI or a filesystem this program cannot use
    │   ├── CursorRejected           a cursor or page token of something else, or a damaged one
    │   ├── SchemaChangeRefused      a schema that this graph cannot be brought to as it is
    │   ├── NotAvailable             something this version of the program does not do
    │   └── ReadOnly                 a write through a handle opened read-only
    ├── NotFound                     something named does not exist
    │   ├── GraphNotFound            nothing at this location, or it is not a graph
    │   ├── BranchNotFound
    │   ├── CommitNotFound
    │   ├── TagNotFound
    │   ├── RefNotFound              neither a branch nor a tag, a commit or a time
    │   ├── HistoryReclaimed         an old state whose files were cleaned up
    │   │   └── HistoryPurged        an old state that a purge gave up, or is rewriting
    │   ├── TypeNotFound
    │   ├── QueryNotFound            the text holds no query of this name
    │   ├── EntityNotFound
    │   └── ObjectNotFound           an object of the store (control files)
    ├── AlreadyExists
    │   ├── GraphExists
    │   ├── BranchExists
    │   ├── TagExists
    │   ├── BackupRefused            a place that holds something else than this graph's backup
    │   └── ObjectExists
    ├── Conflict                     somebody else was there first; nothing of this write is visible
    │   ├── VersionConflict          a type was written by someone else since it was read
    │   ├── ReadSetConflict          something this write relied on has changed
    │   │   └── SchemaChanged        a write that was read under a schema the branch no longer has
    │   ├── KeyConflict              an entity with this id exists already
    │   ├── PreconditionFailed       the branch head is not the commit the caller expected
    │   ├── MergeConflicts           two sides of a merge cannot be brought together, all listed
    │   ├── PurgeRefused             what is to be purged is in use
    │   ├── BranchInUse              a branch that other branches or tags depend on
    │   ├── BranchUnmerged           a branch with commits that no other branch has
    │   ├── BranchProtected          a branch that does not allow this
    │   ├── SchemasDiffer            two sides of a merge have different schemas
    │   ├── ObjectChanged            a conditional replace of an object lost
    │   ├── Contention               too many writers for too long; trying again is right
    │   └── OwnershipLost            another process resolved this write while this one was paused
    ├── StorageFailure               the store said no, or nothing
    │   ├── PermissionDenied
    │   ├── StorageFull
    │   ├── OutputFailed             standard output could not be written
    │   ├── OutcomeUnknown           the request was sent, the answer never came; look the id up
    │   ├── ExternalBlobUnavailable  bytes outside the graph could not be fetched
    │   └── CorruptData              what was read is not what was written
    ├── RecoveryRequired             an unfinished write is in the way and cannot be resolved now
    ├── Drift                        a table moved without being published
    ├── ChangesRefused               a commit whose changes cannot be shown as changes of entities
    ├── ChangeFeedGap                history that a reader of changes needs was cleaned up
    ├── FormatUnsupported            the graph's format is too old or too new for this program
    ├── GraphMoved                   branches that refer to where the graph was before
    ├── ResourceLimit                a named limit was reached
    ├── QueryTimeout                 a query ran longer than it was allowed to
    ├── QueryCancelled               the caller no longer wanted the answer
    ├── SparkFailure                 a Spark job could not be carried out
    │   ├── SparkUnavailable         no session: not installed, no Java, no such cluster
    │   └── SparkStalled             a job made no progress for too long and was given up
    └── EmbeddingFailure             a text could not be turned into a vector

Each class has a stable ``code``, an HTTP ``status``, whether a plain retry may help, a ``details``
mapping with structured facts and a ``remedy``: one sentence that says what to do. The errors
import nothing else of the package, and nobody matches on message text.
"""

from omnigraph.errors.base import OmnigraphError
from omnigraph.errors.changes import ChangeFeedGap, ChangesRefused
from omnigraph.errors.conflict import (
    BranchInUse,
    BranchProtected,
    BranchUnmerged,
    Conflict,
    Contention,
    KeyConflict,
    MergeConflicts,
    ObjectChanged,
    OwnershipLost,
    PreconditionFailed,
    PurgeRefused,
    ReadSetConflict,
    SchemaChanged,
    SchemasDiffer,
    VersionConflict,
)
from omnigraph.errors.existence import (
    AlreadyExists,
    BackupRefused,
    BranchExists,
    BranchNotFound,
    CommitNotFound,
    EntityNotFound,
    GraphExists,
    GraphNotFound,
    HistoryPurged,
    HistoryReclaimed,
    NotFound,
    ObjectExists,
    ObjectNotFound,
    QueryNotFound,
    RefNotFound,
    TagExists,
    TagNotFound,
    TypeNotFound,
)
from omnigraph.errors.invalid import (
    BlobRangeInvalid,
    ConstraintViolation,
    CursorRejected,
    ExternalBlobDenied,
    IdempotencyMismatch,
    InvalidData,
    InvalidInput,
    InvalidValue,
    LanguageError,
    NotAvailable,
    ParameterError,
    ReadOnly,
    SchemaChangeRefused,
    UnsupportedLocation,
)
from omnigraph.errors.limits import QueryCancelled, QueryTimeout, ResourceLimit
from omnigraph.errors.services import EmbeddingFailure, SparkFailure, SparkStalled, SparkUnavailable
from omnigraph.errors.storage import (
    CorruptData,
    Drift,
    ExternalBlobUnavailable,
    FormatUnsupported,
    GraphMoved,
    OutcomeUnknown,
    OutputFailed,
    PermissionDenied,
    RecoveryRequired,
    StorageFailure,
    StorageFull,
)

__all__ = [
    "AlreadyExists",
    "BackupRefused",
    "BlobRangeInvalid",
    "BranchExists",
    "BranchInUse",
    "BranchNotFound",
    "BranchProtected",
    "BranchUnmerged",
    "ChangeFeedGap",
    "ChangesRefused",
    "CommitNotFound",
    "Conflict",
    "ConstraintViolation",
    "Contention",
    "CorruptData",
    "CursorRejected",
    "Drift",
    "EmbeddingFailure",
    "EntityNotFound",
    "ExternalBlobDenied",
    "ExternalBlobUnavailable",
    "FormatUnsupported",
    "GraphExists",
    "GraphMoved",
    "GraphNotFound",
    "HistoryPurged",
    "HistoryReclaimed",
    "IdempotencyMismatch",
    "InvalidData",
    "InvalidInput",
    "InvalidValue",
    "KeyConflict",
    "LanguageError",
    "MergeConflicts",
    "NotAvailable",
    "NotFound",
    "ObjectChanged",
    "ObjectExists",
    "ObjectNotFound",
    "OmnigraphError",
    "OutcomeUnknown",
    "OutputFailed",
    "OwnershipLost",
    "ParameterError",
    "PermissionDenied",
    "PreconditionFailed",
    "PurgeRefused",
    "QueryCancelled",
    "QueryNotFound",
    "QueryTimeout",
    "ReadOnly",
    "ReadSetConflict",
    "RecoveryRequired",
    "RefNotFound",
    "ResourceLimit",
    "SchemaChangeRefused",
    "SchemaChanged",
    "SchemasDiffer",
    "SparkFailure",
    "SparkStalled",
    "SparkUnavailable",
    "StorageFailure",
    "StorageFull",
    "TagExists",
    "TagNotFound",
    "TypeNotFound",
    "UnsupportedLocation",
    "VersionConflict",
]
