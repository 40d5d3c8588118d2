"""Every error a user can meet, as one tree.

    OmnigraphError
    ├── InvalidInput                 the request itself is wrong; repeating it cannot help
    │   ├── LanguageError            invalid schema or query text
    │   │   ├── SourceError          with all diagnostics (in ``omnigraph.lang.syntax``)
    │   │   └── ParameterError       values that do not match the parameters of a query
    │   ├── InvalidValue             a value that does not match its declared type
    │   ├── CalculationFailed        an expression has no value: an overflow, a division by zero
    │   ├── InvalidData              records that cannot be parsed or do not match the schema
    │   │   └── ConstraintViolation  data that violates the schema's constraints
    │   ├── IdempotencyMismatch      an idempotency key used again for a different request
    │   ├── ExternalBlobDenied       a reference to external bytes that this graph does not allow
    │   ├── BlobRangeInvalid         a range outside the blob
    │   ├── UnsupportedLocation      a URI or a filesystem that is not supported
    │   ├── CursorRejected           a cursor or page token of another request, or a damaged one
    │   ├── SchemaChangeRefused      a schema change that the stored data does not allow
    │   ├── NotAvailable             not supported by this version
    │   └── ReadOnly                 a write through a handle opened read-only
    ├── NotFound                     a named thing does not exist
    │   ├── GraphNotFound            the location is empty or not a graph
    │   ├── BranchNotFound
    │   ├── CommitNotFound
    │   ├── TagNotFound
    │   ├── RefNotFound              not a branch, tag, commit or time
    │   ├── HistoryReclaimed         an old state that cleanup removed
    │   │   └── HistoryPurged        an old state that a purge dropped or is rewriting
    │   ├── TypeNotFound
    │   ├── QueryNotFound            the text has no query of this name
    │   ├── EntityNotFound
    │   └── ObjectNotFound           a control object of the store
    ├── AlreadyExists
    │   ├── GraphExists
    │   ├── BranchExists
    │   ├── TagExists
    │   ├── BackupRefused            the target is not empty and not a backup of this graph
    │   └── ObjectExists
    ├── Conflict                     a concurrent write came first; nothing of this one is visible
    │   ├── VersionConflict          a type was written concurrently since it was read
    │   ├── ReadSetConflict          part of the read set of this write has changed
    │   │   └── SchemaChanged        the schema of the branch has changed since the input was read
    │   ├── KeyConflict              an entity with this id exists already
    │   ├── PreconditionFailed       the branch head is not the commit the caller expected
    │   ├── MergeConflicts           the conflicts of a merge, all listed
    │   ├── PurgeRefused             the entity to purge is in use
    │   ├── BranchInUse              a branch that other branches or tags depend on
    │   ├── BranchUnmerged           a branch with unmerged commits
    │   ├── BranchProtected          the branch is protected
    │   ├── SchemasDiffer            two sides of a merge have different schemas
    │   ├── ObjectChanged            a compare-and-swap of an object failed
    │   ├── Contention               retries were exhausted because of concurrent writers
    │   └── OwnershipLost            another process resolved this write while this one was paused
    ├── StorageFailure               the store failed or did not respond
    │   ├── PermissionDenied
    │   ├── StorageFull
    │   ├── OutputFailed             standard output could not be written
    │   ├── OutcomeUnknown           a request without a response; it may have taken effect
    │   ├── ExternalBlobUnavailable  external bytes could not be read
    │   └── CorruptData              stored data is damaged
    ├── RecoveryRequired             an unfinished write blocks this one and cannot be resolved now
    ├── Drift                        a table has versions that were never published
    ├── ChangesRefused               a commit without entity changes to show
    ├── ChangeFeedGap                cleanup removed history that a change feed reader needs
    ├── FormatUnsupported            the format of the graph is too old or too new
    ├── GraphMoved                   branches refer to a former location of the graph
    ├── ResourceLimit                a named limit was exceeded
    ├── QueryTimeout                 a query exceeded its time limit
    ├── QueryCancelled               the caller cancelled the query
    ├── SparkFailure                 a Spark job failed
    │   ├── SparkUnavailable         no session: not installed, no Java, no such cluster
    │   └── SparkStalled             a job made no progress and was cancelled
    ├── RequestRefused               a server refuses a request before any engine sees it
    │   ├── Unauthorized             no token, or none that the server knows
    │   ├── Forbidden                the policy does not allow the action
    │   ├── RouteNotFound
    │   ├── GraphNotServed           no graph of this id, or none that the caller may see
    │   ├── StoredQueryNotFound
    │   ├── MethodNotAllowed
    │   ├── NotAcceptable            no representation that the client accepts
    │   ├── BodyTimeout              the body of a request came too slowly
    │   ├── BlobPreconditionFailed   a blob has another ETag than ``If-Match`` requires
    │   ├── UnsupportedMediaType
    │   ├── TooManyRequests          the actor has too many writes in flight
    │   ├── ApiContractMismatch      a version of the HTTP API that the server does not speak
    │   ├── GraphUnavailable         a graph that cannot be served now
    │   └── ServiceUnavailable       the server is overloaded or stopping
    └── EmbeddingFailure             a text could not be embedded

Each class has a stable ``code``, an HTTP ``status``, whether a plain retry may help, a ``details``
mapping with structured facts and a ``remedy``: an instruction. The errors import nothing else of
the package, and no code matches on message text.
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
    CalculationFailed,
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
from omnigraph.errors.requests import (
    ApiContractMismatch,
    BlobPreconditionFailed,
    BodyTimeout,
    Forbidden,
    GraphNotServed,
    GraphUnavailable,
    MethodNotAllowed,
    NotAcceptable,
    RequestRefused,
    RouteNotFound,
    ServiceUnavailable,
    StoredQueryNotFound,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
)
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
    "ApiContractMismatch",
    "BackupRefused",
    "BlobPreconditionFailed",
    "BlobRangeInvalid",
    "BodyTimeout",
    "BranchExists",
    "BranchInUse",
    "BranchNotFound",
    "BranchProtected",
    "BranchUnmerged",
    "CalculationFailed",
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
    "Forbidden",
    "FormatUnsupported",
    "GraphExists",
    "GraphMoved",
    "GraphNotFound",
    "GraphNotServed",
    "GraphUnavailable",
    "HistoryPurged",
    "HistoryReclaimed",
    "IdempotencyMismatch",
    "InvalidData",
    "InvalidInput",
    "InvalidValue",
    "KeyConflict",
    "LanguageError",
    "MergeConflicts",
    "MethodNotAllowed",
    "NotAcceptable",
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
    "RequestRefused",
    "ResourceLimit",
    "RouteNotFound",
    "SchemaChangeRefused",
    "SchemaChanged",
    "SchemasDiffer",
    "ServiceUnavailable",
    "SparkFailure",
    "SparkStalled",
    "SparkUnavailable",
    "StorageFailure",
    "StorageFull",
    "StoredQueryNotFound",
    "TagExists",
    "TagNotFound",
    "TooManyRequests",
    "TypeNotFound",
    "Unauthorized",
    "UnsupportedLocation",
    "UnsupportedMediaType",
    "VersionConflict",
]
