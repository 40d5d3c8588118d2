"""Every setting: its default, its environment variable and what it means.

A :class:`Settings` is read once, by ``omnigraph.open``, ``omnigraph.init`` or a command, and passed
down as a value; tasks on executors get the parts they need with their own values. No other module
reads the environment, with these exceptions:

* ``storage/failpoints.py`` arms failpoints when it is imported, so that a test can stop a child
  process anywhere, before there is a ``Settings``.
* ``storage/__init__.py`` and ``spark/session/process_environment.py`` set variables that other
  programs read (Lance, Java, PySpark and its workers).

``docs/reference/settings.md`` is generated from this module.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from omnigraph.errors import InvalidInput
from omnigraph.model.integers import whole_number

Durability = Literal["process", "fsync"]
"""What an acknowledged write survives on a local disk: the end of the process, or loss of power."""
Engine = Literal["auto", "spark", "local"]
EmbeddingProvider = Literal["openai-compatible", "openai", "gemini", "mock"]

_DURABILITIES: Final[tuple[str, ...]] = get_args(Durability)
_ENGINES: Final[tuple[str, ...]] = get_args(Engine)
_PROVIDERS: Final[tuple[str, ...]] = get_args(EmbeddingProvider)
_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class EnvironmentVariable:
    """The environment variable of one setting: its names, how its text is read, and its meaning."""

    names: tuple[str, ...]
    """Names of variables; the first one that is set is used."""
    meaning: str
    read: Callable[[str], Any]
    """Converts the text to a value; None when the text is not allowed."""
    allowed: str
    default: str
    """The default as the documentation shows it."""
    empty_counts: bool = False
    """Whether an empty variable counts as set."""

    def value(self, environment: Mapping[str, str]) -> Any:
        """The value from the environment; None when no variable is set."""
        for name in self.names:
            text = environment.get(name)
            if text is None or (not text.strip() and not self.empty_counts):
                continue
            value = self.read(text.strip())
            if value is None:
                raise InvalidInput(
                    f"{name} is {text!r}; it must be {self.allowed}",
                    remedy=f"Set {name} to {self.allowed}, or unset it.",
                    details={"variable": name, "value": text, "allowed": self.allowed},
                )
            return value
        return None


def _text(
    meaning: str,
    *names: str,
    default: str | None = None,
    shown: str = "–",
    secret: bool = False,
    empty_counts: bool = False,
) -> Any:
    variable = EnvironmentVariable(names, meaning, str, "a text", shown, empty_counts)
    return _field(variable, default, secret=secret)


def _whole(
    meaning: str, name: str, default: int | None, low: int, *, shown: str | None = None
) -> Any:
    def read(text: str) -> int | None:
        number = whole_number(text)
        return number if number is not None and number >= low else None

    allowed = f"a whole number of at least {low}"
    return _field(
        EnvironmentVariable(
            (name,), meaning, read, allowed, str(default) if shown is None else shown
        ),
        default,
    )


def _seconds(
    meaning: str, name: str, default: float, *, least: float, allowed: str, below: float = math.inf
) -> Any:
    def read(text: str) -> float | None:
        try:
            number = float(text)
        except ValueError:
            return None
        return number if least <= number < below else None

    return _field(EnvironmentVariable((name,), meaning, read, allowed, f"{default:g}"), default)


def _choice(
    meaning: str, name: str, default: str | None, allowed: tuple[str, ...], *, shown: str = ""
) -> Any:
    def read(text: str) -> str | None:
        return text if text in allowed else None

    one_of = f"one of {', '.join(allowed)}"
    return _field(
        EnvironmentVariable((name,), meaning, read, one_of, shown or f"`{default}`"), default
    )


def _flag(meaning: str, name: str, default: bool | None = None) -> Any:
    def read(text: str) -> bool | None:
        return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.lower())

    shown = "–" if default is None else f"`{str(default).lower()}`"
    return _field(EnvironmentVariable((name,), meaning, read, "true or false", shown), default)


def _field(variable: EnvironmentVariable, default: Any, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"variable": variable})


_POSITIVE: Final = math.ulp(0.0)


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Where and how bytes are written. The credentials are those of S3."""

    durability: Durability = _choice(  # noqa: RUF009 - a field
        "what an acknowledged write survives on a local disk: `process` (the end of the process) "
        "or `fsync` (also loss of power; slower). The argument `durability` of `open` and `init` "
        "takes precedence",
        "OMNIGRAPH_DURABILITY",
        "process",
        _DURABILITIES,
    )
    access_key_id: str | None = _text("the S3 access key", "AWS_ACCESS_KEY_ID")
    secret_access_key: str | None = _text(
        "the secret of the S3 access key", "AWS_SECRET_ACCESS_KEY", secret=True
    )
    session_token: str | None = _text(
        "the token of temporary S3 credentials", "AWS_SESSION_TOKEN", secret=True
    )
    region: str = _text(
        "the S3 region",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        default="us-east-1",
        shown="`us-east-1`",
    )
    endpoint: str | None = _text(
        "the URL of an S3-compatible store", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"
    )
    allow_http: bool = _flag(
        "whether an S3 endpoint may be unencrypted (`http://`)", "AWS_ALLOW_HTTP", False
    )
    force_path_style: bool | None = _flag(
        "whether the bucket stands in the path of S3 requests (true) or in the host name (false)",
        "AWS_S3_FORCE_PATH_STYLE",
    )


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Limits of time and memory."""

    lease_s: float = _seconds(
        "seconds without a heartbeat after which the write of a process on another host, or of one "
        "that hangs, may be recovered by other processes",
        "OMNIGRAPH_LEASE_SECONDS",
        15.0,
        least=_POSITIVE,
        below=86_400,
        allowed="a number of seconds above 0 and below 86400",
    )
    reader_grace_s: float = _seconds(
        "seconds for which `cleanup` keeps a state after a newer one replaced it, for its readers",
        "OMNIGRAPH_READER_GRACE_SECONDS",
        3_600.0,
        least=0.0,
        below=10**9,
        allowed="a number of seconds from 0 to 10^9",
    )
    upgrade_watch_s: float = _seconds(
        "seconds for which a graph of the Rust original is watched for writers before it is "
        "converted",
        "OMNIGRAPH_UPGRADE_WATCH_SECONDS",
        10.0,
        least=0.0,
        below=86_400,
        allowed="a number of seconds from 0 to 86400",
    )
    load_bytes_max: int = _whole(
        "bytes of column data that a load in process may hold in memory",
        "OMNIGRAPH_LOAD_BYTES_MAX",
        4 << 30,
        0,
        shown="4 GiB",
    )
    mutation_bytes_max: int = _whole(
        "bytes that the pending rows of one mutation may hold in memory",
        "OMNIGRAPH_MUTATION_BYTES_MAX",
        2 << 30,
        0,
        shown="2 GiB",
    )


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Caches of data derived from tables, in memory and on local disk."""

    memory_bytes: int | None = _whole(
        "bytes of memory that the read cache of a process may use",
        "OMNIGRAPH_CACHE_BYTES",
        None,
        0,
        shown="a quarter of memory",
    )
    directory: str | None = _text(
        "directory of the cache of columns, adjacency and search terms that processes share; "
        "readable by its owner only; may be deleted at any time. Empty: no cache on disk",
        "OMNIGRAPH_CACHE_DIR",
        shown="`omnigraph` below `XDG_CACHE_HOME`",
        empty_counts=True,
    )
    directory_bytes: int = _whole(
        "the maximum size of this directory in bytes",
        "OMNIGRAPH_CACHE_DIR_BYTES",
        10 << 30,
        0,
        shown="10 GiB",
    )
    xdg_cache_home: str | None = _text(
        "the user's directory for caches; ignored unless it is absolute",
        "XDG_CACHE_HOME",
        shown="`~/.cache`",
    )

    @property
    def root(self) -> Path:
        """The cache directory of this user; it need not exist."""
        if self.directory:
            return Path(self.directory)
        base = self.xdg_cache_home or ""
        if not os.path.isabs(base):
            base = os.path.join(os.path.expanduser("~"), ".cache")
        return Path(base) / "omnigraph"

    @property
    def keeps_arrays(self) -> bool:
        """Whether derived arrays are cached on local disk."""
        return self.directory != ""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Bulk work on Spark."""

    load_engine: Engine = _choice(  # noqa: RUF009 - a field
        "where a load runs: `local` (in this process), `spark`, or `auto` (where it is done first: "
        "by size, cores and the session at hand)",
        "OMNIGRAPH_LOAD_ENGINE",
        "auto",
        _ENGINES,
    )
    master: str | None = _text(
        "the Spark master that bulk work runs on",
        "OMNIGRAPH_SPARK_MASTER",
        shown="this machine",
    )
    remote: str | None = _text(
        "a Spark Connect server that bulk work runs on, instead of a master", "SPARK_REMOTE"
    )
    server: Literal["auto", "off"] = _choice(
        "whether bulk work uses the warm Spark server of this machine (`omnigraph spark start`) "
        "when it runs",
        "OMNIGRAPH_SPARK_SERVER",
        "auto",
        ("auto", "off"),
    )
    conf: str | None = _text(
        "Spark configuration of sessions that are started here, as `name=value; name=value`; it "
        "stands over `spark-defaults.conf`, which stands over what Omnigraph sets",
        "OMNIGRAPH_SPARK_CONF",
    )
    conf_dir: str | None = _text(
        "the directory of `spark-defaults.conf`",
        "SPARK_CONF_DIR",
        shown="`conf` in the installation of Spark",
    )
    home: str | None = _text(
        "the installation of Spark", "SPARK_HOME", shown="that of the package `pyspark`"
    )
    package: str | None = _text(
        "an archive of `omnigraph spark package`, which the executors of a cluster get",
        "OMNIGRAPH_SPARK_PACKAGE",
    )
    stall_s: float = _seconds(
        "seconds without progress after which a Spark job is cancelled",
        "OMNIGRAPH_SPARK_STALL_SECONDS",
        120.0,
        least=_POSITIVE,
        allowed="a number of seconds above 0",
    )
    java_home: str | None = _text(
        "the Java installation that Spark runs on, if it is Java 17 or newer",
        "JAVA_HOME",
        shown="the `java` on the `PATH`, else the bundled one",
    )


@dataclass(frozen=True, slots=True)
class EmbedSettings:
    """The provider of embeddings, and how its service is called."""

    provider: EmbeddingProvider | None = _choice(  # noqa: RUF009 - a field
        "the provider of embeddings",
        "OMNIGRAPH_EMBED_PROVIDER",
        None,
        _PROVIDERS,
        shown="`openai-compatible`",
    )
    mock: bool = _flag(
        "use the deterministic provider `mock` instead of the configured one",
        "OMNIGRAPH_EMBEDDINGS_MOCK",
        False,
    )
    model: str | None = _text(
        "the embedding model", "OMNIGRAPH_EMBED_MODEL", shown="the provider's"
    )
    base_url: str | None = _text(
        "the URL of the embedding service", "OMNIGRAPH_EMBED_BASE_URL", shown="the provider's"
    )
    timeout_ms: int = _whole(
        "timeout of one request in milliseconds", "OMNIGRAPH_EMBED_TIMEOUT_MS", 30_000, 1
    )
    deadline_ms: int = _whole(
        "time limit of a request with its retries, in milliseconds; 0: no limit",
        "OMNIGRAPH_EMBED_DEADLINE_MS",
        60_000,
        0,
    )
    attempts: int = _whole(
        "the maximum number of attempts of a request", "OMNIGRAPH_EMBED_RETRY_ATTEMPTS", 4, 1
    )
    backoff_ms: int = _whole(
        "milliseconds before the first retry; doubled for each further one",
        "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS",
        200,
        0,
    )
    openrouter_api_key: str | None = _text(
        "the key of the provider `openai-compatible`", "OPENROUTER_API_KEY", secret=True
    )
    openai_api_key: str | None = _text(
        "the key of the providers `openai` and `openai-compatible`", "OPENAI_API_KEY", secret=True
    )
    gemini_api_key: str | None = _text(
        "the key of the provider `gemini`", "GEMINI_API_KEY", secret=True
    )


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The HTTP server: who may call it, and its limits. Limits hold per worker process."""

    bearer_token: str | None = _text(
        "a bearer token, of the actor `default`", "OMNIGRAPH_SERVER_BEARER_TOKEN", secret=True
    )
    tokens_file: str | None = _text(
        "a file with a JSON object of actors and bearer tokens; read again when it changes",
        "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE",
    )
    tokens_json: str | None = _text(
        "the same object itself; the file counts where both are set",
        "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON",
        secret=True,
    )
    tokens_aws_secret: str | None = _text(
        "not supported: a server with this variable does not start",
        "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET",
    )
    oidc_issuer: str | None = _text(
        "the issuer of OpenID Connect tokens that are accepted", "OMNIGRAPH_SERVER_OIDC_ISSUER"
    )
    oidc_audience: str | None = _text(
        "the audience that these tokens must have", "OMNIGRAPH_SERVER_OIDC_AUDIENCE"
    )
    oidc_jwks_url: str | None = _text(
        "where the keys of the issuer are",
        "OMNIGRAPH_SERVER_OIDC_JWKS_URL",
        shown="what the issuer's discovery document names",
    )
    oidc_actor_claim: str = _text(
        "the claim of these tokens that names the actor",
        "OMNIGRAPH_SERVER_OIDC_ACTOR_CLAIM",
        default="sub",
        shown="`sub`",
    )
    unauthenticated: bool = _flag(
        "serve without tokens: everybody who reaches the server may use it",
        "OMNIGRAPH_UNAUTHENTICATED",
        False,
    )
    require_all_graphs: bool = _flag(
        "do not start when one of the graphs cannot be opened",
        "OMNIGRAPH_REQUIRE_ALL_GRAPHS",
        False,
    )
    bind: str = _text(
        "the address and port to listen on; port 0 takes a free one",
        "OMNIGRAPH_BIND",
        default="127.0.0.1:8080",
        shown="`127.0.0.1:8080`",
    )
    workers: int = _whole("worker processes", "OMNIGRAPH_SERVER_WORKERS", 1, 1)
    read_threads: int = _whole(
        "threads that reads run in",
        "OMNIGRAPH_SERVER_READ_THREADS",
        8,
        1,
    )
    write_threads: int = _whole(
        "threads that writes run in", "OMNIGRAPH_SERVER_WRITE_THREADS", 8, 1
    )
    queue_max: int = _whole(
        "calls that may wait for a thread before further ones are refused",
        "OMNIGRAPH_SERVER_QUEUE_MAX",
        256,
        1,
    )
    inflight_max: int = _whole(
        "writes that an actor may have in flight", "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX", 16, 1
    )
    inflight_bytes_max: int = _whole(
        "bytes that the writes of an actor in flight may have",
        "OMNIGRAPH_PER_ACTOR_BYTES_MAX",
        4 << 30,
        1,
        shown="4 GiB",
    )
    timeout_ms: int = _whole(
        "milliseconds for the statement of a request, unless it asks for less; 0: no limit",
        "OMNIGRAPH_SERVER_TIMEOUT_MS",
        60_000,
        0,
    )
    memory_bytes_max: int | None = _whole(
        "bytes of working memory for the query of a request",
        "OMNIGRAPH_SERVER_QUERY_BYTES_MAX",
        None,
        1,
        shown="a quarter of memory",
    )
    body_bytes_max: int = _whole(
        "bytes of a JSON body", "OMNIGRAPH_SERVER_BODY_BYTES_MAX", 1 << 20, 1, shown="1 MiB"
    )
    load_body_bytes_max: int = _whole(
        "bytes of the JSON body of `/load` and `/ingest`, which is held in memory",
        "OMNIGRAPH_SERVER_LOAD_BODY_BYTES_MAX",
        32 << 20,
        1,
        shown="32 MiB",
    )
    bulk_body_bytes_max: int = _whole(
        "bytes of a body that is streamed to the loader, after decompression",
        "OMNIGRAPH_SERVER_BULK_BODY_BYTES_MAX",
        64 << 30,
        1,
        shown="64 GiB",
    )
    body_timeout_s: float = _seconds(
        "seconds without a byte after which the body of a request is given up",
        "OMNIGRAPH_SERVER_BODY_TIMEOUT_SECONDS",
        30.0,
        least=_POSITIVE,
        allowed="a number of seconds above 0",
    )
    shutdown_grace_s: float = _seconds(
        "seconds that running requests get when the server stops",
        "OMNIGRAPH_SHUTDOWN_GRACE_SECONDS",
        25.0,
        least=0.0,
        allowed="a number of seconds from 0",
    )
    slow_query_ms: int = _whole(
        "milliseconds after which a query is logged with its plan; 0: never",
        "OMNIGRAPH_SERVER_SLOW_QUERY_MS",
        1_000,
        0,
    )
    log_level: Literal["debug", "info", "warning", "error"] = _choice(
        "what the server logs: `info` has a line per request",
        "OMNIGRAPH_SERVER_LOG",
        "info",
        ("debug", "info", "warning", "error"),
    )


@dataclass(frozen=True, slots=True)
class CliSettings:
    """The command line."""

    home: str | None = _text(
        "the directory in which a configuration file is looked for (it is not read yet)",
        "OMNIGRAPH_HOME",
        shown="`~/.omnigraph`",
    )
    profile: str | None = _text(
        "the profile to use (there are none yet: a value is an error)", "OMNIGRAPH_PROFILE"
    )
    debug: bool = _flag("print the traceback of a defect", "OMNIGRAPH_DEBUG", False)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a graph handle or of a command. Immutable; secrets are not in its repr."""

    actor: str | None = _text(
        "the actor that commits, tags and branches record, unless the write, `open(actor=…)` or "
        "`--as` names one",
        "OMNIGRAPH_ACTOR",
    )
    storage: StorageSettings = field(default_factory=StorageSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    embed: EmbedSettings = field(default_factory=EmbedSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    cli: CliSettings = field(default_factory=CliSettings)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings of the process, or of the given variables.

        Raises:
            InvalidInput: A variable has a value that is not allowed.
        """
        return cast(Settings, _read(cls(), os.environ if environment is None else environment))

    def with_durability(self, durability: str | None) -> Settings:
        """These settings with another durability; None changes nothing."""
        if durability is None:
            return self
        if not isinstance(durability, str) or durability not in _DURABILITIES:
            shown = repr(durability) if isinstance(durability, str) else type(durability).__name__
            raise InvalidInput(
                f"durability must be {' or '.join(_DURABILITIES)}, not {shown}",
                remedy=f"Use one of {', '.join(_DURABILITIES)}.",
            )
        storage = replace(self.storage, durability=cast(Durability, durability))
        return replace(self, storage=storage)

    def with_master(self, master: str | None) -> Settings:
        """These settings with another Spark master; None changes nothing."""
        if master is None:
            return self
        if not master.isprintable():
            raise InvalidInput(
                f"the Spark master {master!a} contains characters that cannot be printed",
                remedy="Give a master such as `local[4]` or `spark://host:7077`.",
            )
        return replace(self, spark=replace(self.spark, master=master))


def _read(settings: Any, environment: Mapping[str, str]) -> Any:
    """A group of settings, with the values that the environment sets."""
    values: dict[str, Any] = {}
    for item in fields(settings):
        default = getattr(settings, item.name)
        if is_dataclass(default):
            values[item.name] = _read(default, environment)
        else:
            value = item.metadata["variable"].value(environment)
            values[item.name] = default if value is None else value
    return type(settings)(**values)


def described(settings: Any = None, prefix: str = "") -> Iterator[tuple[str, EnvironmentVariable]]:
    """The dotted name in :class:`Settings` and the environment variable of every setting."""
    settings = Settings() if settings is None else settings
    for item in fields(settings):
        value = getattr(settings, item.name)
        if is_dataclass(value):
            yield from described(value, f"{prefix}{item.name}.")
        else:
            yield prefix + item.name, item.metadata["variable"]
