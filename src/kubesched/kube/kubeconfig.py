"""kubeconfig files: read, checked, merged as kubectl merges them, paths made absolute."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api.schema import convert
from kubesched.api.yaml import YamlError, documents
from kubesched.kube.errors import ConnectionSettingsError

Entry = TypeVar("Entry", bound="Cluster | User | Context")


class _Kebab(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    """Most names in a kubeconfig have dashes."""


class _Camel(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Names in the exec section are as in the rest of Kubernetes."""


class NamedExtension(_Kebab, frozen=True):
    """Something that others keep in a kubeconfig."""

    name: str = ""
    extension: Any = None


class Cluster(_Kebab, frozen=True):
    """An API server."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: bytes = b""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[NamedExtension, ...] = ()


class ExecVariable(_Camel, frozen=True):
    """An environment variable of a plugin."""

    name: str = ""
    value: str = ""


class ExecPlugin(_Camel, frozen=True):
    """A command that prints credentials."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecVariable, ...] = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProvider(_Kebab, frozen=True):
    """Credentials by a method that clients know by name."""

    name: str = ""
    config: dict[str, str] = {}


class User(_Kebab, frozen=True):
    """Who we are."""

    client_certificate: str = ""
    client_certificate_data: bytes = b""
    client_key: str = ""
    client_key_data: bytes = b""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: tuple[str, ...] = msgspec.field(default=(), name="as-groups")
    impersonate_user_extra: dict[str, tuple[str, ...]] = msgspec.field(default={}, name="as-user-extra")
    username: str = ""
    password: str = ""
    auth_provider: AuthProvider | None = None
    exec: ExecPlugin | None = None


class Context(_Kebab, frozen=True):
    """A user of a cluster."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class Kubeconfig(msgspec.Struct, frozen=True, kw_only=True):
    """One kubeconfig, or several as one. `origins` says which file an entry is from, by the entry's place."""

    current_context: str = ""
    clusters: dict[str, Cluster] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}
    origins: dict[str, str] = {}

    def origin(self, place: str) -> str:
        """How errors name an entry such as `clusters[prod]`: with its file in front."""
        file = self.origins.get(place, "")
        return f"{file}: {place}" if file else place


class _NamedCluster(_Kebab, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class _NamedUser(_Kebab, frozen=True):
    name: str
    user: User = User()


class _NamedContext(_Kebab, frozen=True):
    name: str
    context: Context = Context()


class _Written(_Kebab, frozen=True):
    """A file."""

    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()


def paths_of_environment(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Where kubectl looks: the files in KUBECONFIG, or the one in the home directory."""
    if listed := environ.get("KUBECONFIG", ""):
        return tuple(dict.fromkeys(listed.split(os.pathsep)))
    return (str(Path(environ.get("HOME", "~"), ".kube", "config")),)


def load_merged(paths: Iterable[str]) -> Kubeconfig:
    """Several files as one: the first that has an entry of some name wins. Missing files are skipped."""
    read = [load(path) for path in paths if path and Path(path).exists()]
    backwards = read[::-1]
    return Kubeconfig(
        current_context=next((config.current_context for config in read if config.current_context), ""),
        clusters={name: it for config in backwards for name, it in config.clusters.items()},
        users={name: it for config in backwards for name, it in config.users.items()},
        contexts={name: it for config in backwards for name, it in config.contexts.items()},
        origins={place: file for config in backwards for place, file in config.origins.items()},
    )


def load(path: str) -> Kubeconfig:
    """One file. Raises ConnectionSettingsError naming file and field."""
    try:
        text = Path(path).read_text()
    except OSError as problem:
        raise ConnectionSettingsError(f"kubeconfig {path}: {problem.strerror}") from None
    except UnicodeError as problem:
        raise ConnectionSettingsError(f"kubeconfig {path}: expected text: {problem}") from None
    return parse(text, path)


def parse(text: str, path: str) -> Kubeconfig:
    """The kubeconfig in a text; `path` is where it is from, which relative paths in it start at."""
    try:
        document = next(documents(text), None)
    except YamlError as problem:
        raise ConnectionSettingsError(f"kubeconfig {path}: {problem}") from None
    value = document.value if document is not None else None
    if isinstance(value, dict) and value.get("kind", "Config") != "Config":
        raise ConnectionSettingsError(f'kubeconfig {path}: kind: expected "Config", got "{value["kind"]}"')
    written, mistakes = convert({} if value is None else value, _Written)
    if written is None:
        raise ConnectionSettingsError(*(f"kubeconfig {path}: {mistake}" for mistake in mistakes))
    base = Path(path).absolute().parent
    clusters = _by_name(((it.name, _rooted_cluster(it.cluster, base)) for it in written.clusters), "clusters", path)
    users = _by_name(((it.name, _rooted_user(it.user, base)) for it in written.users), "users", path)
    contexts = _by_name(((it.name, it.context) for it in written.contexts), "contexts", path)
    kinds: dict[str, Iterable[str]] = {"clusters": clusters, "users": users, "contexts": contexts}
    origins = {f"{kind}[{name}]": path for kind, names in kinds.items() for name in names}
    return Kubeconfig(
        current_context=written.current_context, clusters=clusters, users=users, contexts=contexts, origins=origins
    )


def _by_name(named: Iterable[tuple[str, Entry]], kind: str, path: str) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for name, entry in named:
        if name in entries:
            raise ConnectionSettingsError(f'kubeconfig {path}: {kind}: duplicate name "{name}"')
        entries[name] = entry
    return entries


def _rooted_cluster(cluster: Cluster, base: Path) -> Cluster:
    return replace(cluster, certificate_authority=_rooted(cluster.certificate_authority, base))


def _rooted_user(user: User, base: Path) -> User:
    plugin = user.exec
    if plugin is not None and os.sep in plugin.command:  # other commands are looked up in PATH
        plugin = replace(plugin, command=_rooted(plugin.command, base))
    return replace(
        user,
        client_certificate=_rooted(user.client_certificate, base),
        client_key=_rooted(user.client_key, base),
        token_file=_rooted(user.token_file, base),
        exec=plugin,
    )


def _rooted(path: str, base: Path) -> str:
    return os.path.normpath(base / path) if path else ""
