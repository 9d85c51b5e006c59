"""Reads kubeconfig files, makes their paths absolute, and finds the mistakes in their clusters and users."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.api.schema import convert
from kubesched.api.yaml import YamlError, documents
from kubesched.kube.errors import ConnectionSettingsError
from kubesched.kube.proxy import parse_proxy

Entry = TypeVar("Entry", bound="KubeconfigCluster | KubeconfigUser | Context")


class _Kebab(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    """Most names in a kubeconfig have dashes."""


class _Camel(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Names in the exec section are as in the rest of Kubernetes."""


class NamedExtension(_Kebab, frozen=True):
    """Data of other programs in a kubeconfig."""

    name: str = ""
    extension: Any = None


class KubeconfigCluster(_Kebab, frozen=True):
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
    """Credentials by a named method that is built into clients."""

    name: str = ""
    config: dict[str, str] = {}


class KubeconfigUser(_Kebab, frozen=True):
    """The user of a kubeconfig, with its credentials."""

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
    """The content of a kubeconfig; `file` is where it was read from."""

    current_context: str = ""
    clusters: dict[str, KubeconfigCluster] = {}
    users: dict[str, KubeconfigUser] = {}
    contexts: dict[str, Context] = {}
    file: str = ""

    def origin(self, place: str) -> str:
        """How errors name an entry such as `clusters[prod]`: with its file in front."""
        return f"{self.file}: {place}" if self.file else place


class _Entry(_Kebab, frozen=True):
    """An entry of one of the lists: a cluster, a user or a context."""

    name: str
    cluster: KubeconfigCluster = KubeconfigCluster()
    user: KubeconfigUser = KubeconfigUser()
    context: Context = Context()


class _File(_Kebab, frozen=True):
    """The fields of a kubeconfig file."""

    current_context: str = ""
    clusters: tuple[_Entry, ...] = ()
    users: tuple[_Entry, ...] = ()
    contexts: tuple[_Entry, ...] = ()


def load(path: str) -> Kubeconfig:
    """One file. Raises ConnectionSettingsError naming file and field."""
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise ConnectionSettingsError(f"kubeconfig {path}: {error.strerror}") from None
    except UnicodeError as error:
        raise ConnectionSettingsError(f"kubeconfig {path}: expected text: {error}") from None
    return parse(text, path)


def load_merged(environ: Mapping[str, str]) -> Kubeconfig:
    """The files of KUBECONFIG, or ~/.kube/config; of entries with the same name the first counts, as in client-go.

    Missing files are ignored, so it may be empty; `file` has the paths.
    """
    listed = [path for path in environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    paths = list(dict.fromkeys(listed)) or [os.path.join(environ.get("HOME", ""), ".kube", "config")]
    kubeconfigs = [load(path) for path in paths if os.path.exists(path)]
    if len(kubeconfigs) == 1:
        return kubeconfigs[0]
    return Kubeconfig(
        current_context=next((config.current_context for config in kubeconfigs if config.current_context), ""),
        clusters=dict(ChainMap(*(config.clusters for config in kubeconfigs))),
        users=dict(ChainMap(*(config.users for config in kubeconfigs))),
        contexts=dict(ChainMap(*(config.contexts for config in kubeconfigs))),
        file=os.pathsep.join(paths),
    )


def parse(text: str, path: str) -> Kubeconfig:
    """The kubeconfig in a text. Relative paths in it are relative to the folder of `path`, which it is from."""
    try:
        document = next(documents(text), None)
    except YamlError as error:
        raise ConnectionSettingsError(f"kubeconfig {path}: {error}") from None
    value = document.value if document is not None else None
    if isinstance(value, dict) and value.get("kind", "Config") != "Config":
        raise ConnectionSettingsError(f'kubeconfig {path}: kind: expected "Config", got "{value["kind"]}"')
    content, mistakes = convert({} if value is None else value, _File)
    if content is None:
        raise ConnectionSettingsError(*(f"kubeconfig {path}: {mistake}" for mistake in mistakes))
    base = Path(path).absolute().parent
    clusters = ((entry.name, _root_cluster(entry.cluster, base)) for entry in content.clusters)
    users = ((entry.name, _root_user(entry.user, base)) for entry in content.users)
    contexts = ((entry.name, entry.context) for entry in content.contexts)
    return Kubeconfig(
        current_context=content.current_context,
        clusters=_by_name(clusters, "clusters", path),
        users=_by_name(users, "users", path),
        contexts=_by_name(contexts, "contexts", path),
        file=path,
    )


def _by_name(entries: Iterable[tuple[str, Entry]], kind: str, path: str) -> dict[str, Entry]:
    by_name: dict[str, Entry] = {}
    for name, entry in entries:
        if name in by_name:
            raise ConnectionSettingsError(f'kubeconfig {path}: {kind}: duplicate name "{name}"')
        by_name[name] = entry
    return by_name


def _root_cluster(cluster: KubeconfigCluster, base: Path) -> KubeconfigCluster:
    return replace(cluster, certificate_authority=_absolute(cluster.certificate_authority, base))


def _root_user(user: KubeconfigUser, base: Path) -> KubeconfigUser:
    plugin = user.exec
    if plugin is not None and os.sep in plugin.command:  # other commands are looked up in PATH
        plugin = replace(plugin, command=_absolute(plugin.command, base))
    return replace(
        user,
        client_certificate=_absolute(user.client_certificate, base),
        client_key=_absolute(user.client_key, base),
        token_file=_absolute(user.token_file, base),
        exec=plugin,
    )


def _absolute(path: str, base: Path) -> str:
    return os.path.normpath(base / path) if path else ""


# Mistakes in clusters and users

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


def mistakes_in_cluster(cluster: KubeconfigCluster) -> Iterator[str]:
    """A line for each mistake."""
    authority, data = cluster.certificate_authority, cluster.certificate_authority_data
    if not cluster.server:
        yield "server: expected the address of the API server"
    if cluster.proxy_url:
        try:
            parse_proxy(cluster.proxy_url, "proxy-url")
        except ConnectionSettingsError as error:
            yield str(error)
    yield from _check_given_once("certificate-authority", authority, data)
    if cluster.insecure_skip_tls_verify and (authority or data):
        yield "a certificate authority makes no sense together with insecure-skip-tls-verify"
    if not data:
        yield from _unreadable("certificate-authority", authority)


def mistakes_in_user(user: KubeconfigUser) -> Iterator[str]:
    """A line for each mistake."""
    if user.client_certificate or user.client_certificate_data:
        yield from _check_given_once("client-certificate", user.client_certificate, user.client_certificate_data)
        yield from _check_given_once("client-key", user.client_key, user.client_key_data)
        if not user.client_key and not user.client_key_data:
            yield "client-key-data or client-key must be specified along with a client certificate"
        yield from _unreadable("client-certificate", user.client_certificate)
        yield from _unreadable("client-key", user.client_key)
    if user.token and (user.username or user.password):
        yield "more than one authentication method found: token and basicAuth, only one is allowed"
    if user.exec is not None:
        if user.auth_provider is not None:
            yield "auth-provider cannot be provided in combination with an exec plugin"
        yield from (f"exec: {mistake}" for mistake in _mistakes_in_plugin(user.exec))
    if user.auth_provider is not None:
        yield from (f"auth-provider: {mistake}" for mistake in _mistakes_in_provider(user.auth_provider))
    if not user.impersonate and (user.impersonate_uid or user.impersonate_groups or user.impersonate_user_extra):
        yield "as-uid, as-groups or as-user-extra without impersonating a user in as"


def _check_given_once(field: str, path: str, data: bytes) -> Iterator[str]:
    if path and data:
        yield f"{field}-data and {field} are both specified, only one is allowed"


def _unreadable(field: str, path: str) -> Iterator[str]:
    if path:
        try:
            Path(path).read_bytes()
        except OSError as error:
            yield f"unable to read {field} {path}: {error.strerror}"


def _mistakes_in_plugin(plugin: ExecPlugin) -> Iterator[str]:
    version, mode = plugin.api_version, plugin.interactive_mode
    if not plugin.command:
        yield "command must be specified"
    if not version:
        yield "apiVersion must be specified"
    elif version not in EXEC_VERSIONS:
        yield f'apiVersion: expected {" or ".join(EXEC_VERSIONS)}, got "{version}"'
    if any(not variable.name for variable in plugin.env):
        yield "env: every variable needs a name"
    if not mode and version == EXEC_VERSIONS[0]:
        yield f"interactiveMode must be specified: {', '.join(INTERACTIVE_MODES)}"
    elif mode and mode not in INTERACTIVE_MODES:
        yield f'interactiveMode: expected one of {", ".join(INTERACTIVE_MODES)}, got "{mode}"'


def _mistakes_in_provider(provider: AuthProvider) -> Iterator[str]:
    if provider.name != "oidc":
        yield f'name: expected "oidc", got "{provider.name}"; the others are exec plugins nowadays'
    else:
        yield from (
            f"config: must provide {key}" for key in ("idp-issuer-url", "client-id") if not provider.config.get(key)
        )
