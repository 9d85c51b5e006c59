"""kubeconfig files: read, paths made absolute, and what can be wrong with their users."""

from __future__ import annotations

import os
from collections.abc import Iterable
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
    """What is in a kubeconfig; `file` is where it was read from."""

    current_context: str = ""
    clusters: dict[str, Cluster] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}
    file: str = ""

    def origin(self, place: str) -> str:
        """How errors name an entry such as `clusters[prod]`: with its file in front."""
        return f"{self.file}: {place}" if self.file else place


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


def load(path: str) -> Kubeconfig:
    """One file. Raises ConnectionSettingsError naming file and field."""
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise ConnectionSettingsError(f"kubeconfig {path}: {error.strerror}") from None
    except UnicodeError as error:
        raise ConnectionSettingsError(f"kubeconfig {path}: expected text: {error}") from None
    return parse(text, path)


def parse(text: str, path: str) -> Kubeconfig:
    """The kubeconfig in a text; `path` is where it is from, which relative paths in it start at."""
    try:
        document = next(documents(text), None)
    except YamlError as error:
        raise ConnectionSettingsError(f"kubeconfig {path}: {error}") from None
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
    return Kubeconfig(
        current_context=written.current_context, clusters=clusters, users=users, contexts=contexts, file=path
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


# What can be wrong with a user

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


def mistakes_of_user(user: User, place: str) -> list[str]:
    """A line for each mistake; `place` is the file and the entry."""
    mistakes = [*_of_certificate(user), *_of_methods(user)]
    if user.exec is not None:
        if user.auth_provider is not None:
            mistakes.append("auth-provider cannot be provided in combination with an exec plugin")
        mistakes += [f"exec: {mistake}" for mistake in _of_plugin(user.exec)]
    if user.auth_provider is not None:
        mistakes += [f"auth-provider: {mistake}" for mistake in _of_provider(user)]
    if not user.impersonate and (user.impersonate_uid or user.impersonate_groups or user.impersonate_user_extra):
        mistakes.append("as-uid, as-groups or as-user-extra without impersonating a user in as")
    return [f"{place}: {mistake}" for mistake in mistakes]


def _of_methods(user: User) -> list[str]:
    methods = [name for name, given in (("token", user.token), ("basicAuth", user.username or user.password)) if given]
    if len(methods) > 1:
        return [f"more than one authentication method found: {' and '.join(methods)}, only one is allowed"]
    return []


def _of_certificate(user: User) -> list[str]:
    if not user.client_certificate and not user.client_certificate_data:
        return []
    mistakes = []
    if user.client_certificate and user.client_certificate_data:
        mistakes.append("client-certificate-data and client-certificate are both specified, only one is allowed")
    if user.client_key and user.client_key_data:
        mistakes.append("client-key-data and client-key are both specified, only one is allowed")
    if not user.client_key and not user.client_key_data:
        mistakes.append("client-key-data or client-key must be specified along with a client certificate")
    for field, path in (("client-certificate", user.client_certificate), ("client-key", user.client_key)):
        if path:
            try:
                Path(path).read_bytes()
            except OSError as error:
                mistakes.append(f"unable to read {field} {path}: {error.strerror}")
    return mistakes


def _of_plugin(plugin: ExecPlugin) -> list[str]:
    mistakes = []
    if not plugin.command:
        mistakes.append("command must be specified")
    if not plugin.api_version:
        mistakes.append("apiVersion must be specified")
    elif plugin.api_version not in EXEC_VERSIONS:
        mistakes.append(f'apiVersion: expected {" or ".join(EXEC_VERSIONS)}, got "{plugin.api_version}"')
    if any(not variable.name for variable in plugin.env):
        mistakes.append("env: every variable needs a name")
    if not plugin.interactive_mode and plugin.api_version == EXEC_VERSIONS[0]:
        mistakes.append(f"interactiveMode must be specified: {', '.join(INTERACTIVE_MODES)}")
    elif plugin.interactive_mode and plugin.interactive_mode not in INTERACTIVE_MODES:
        mistakes.append(
            f'interactiveMode: expected one of {", ".join(INTERACTIVE_MODES)}, got "{plugin.interactive_mode}"'
        )
    return mistakes


def _of_provider(user: User) -> list[str]:
    provider = user.auth_provider
    if provider is None:
        return []
    if provider.name != "oidc":
        return [f'name: expected "oidc", got "{provider.name}"; the others are exec plugins nowadays']
    return [f"config: must provide {key}" for key in ("idp-issuer-url", "client-id") if not provider.config.get(key)]
