"""Connection settings: which API server and which user, from a kubeconfig and --master, or from inside a cluster."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kubesched.api.errors import aggregated
from kubesched.kube.errors import ConnectionSettingsError
from kubesched.kube.kubeconfig import (
    Kubeconfig,
    KubeconfigCluster,
    KubeconfigUser,
    load,
    load_merged,
    mistakes_in_cluster,
    mistakes_in_user,
)
from kubesched.kube.proxy import address_of, proxy_of_environment
from kubesched.kube.tls import ServerTrust

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_NOTHING_GIVEN = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)

log = logging.getLogger(__name__)


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The server, how to trust it, and the user: what a client is made from."""

    server: str
    trust: ServerTrust = ServerTrust()
    proxy_url: str = ""
    user: KubeconfigUser = KubeconfigUser()
    user_name: str = ""
    exec_extension: object = None
    """The cluster's extension for exec plugins in the kubeconfig."""
    namespace: str = "default"

    @property
    def is_tls(self) -> bool:
        return self.server.startswith("https://")


def from_flags(
    kubeconfig: str, master: str, environ: Mapping[str, str], *, service_account: str = SERVICE_ACCOUNT
) -> ConnectionSettings:
    """As kube-scheduler: the kubeconfig, with `master` instead of its server if given; else from inside a cluster."""
    if not kubeconfig and not master:
        log.warning(
            "Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work."
        )
        try:
            return in_cluster(environ, service_account=service_account)
        except ConnectionSettingsError as error:
            log.warning("error creating inClusterConfig, falling back to default config: %s", error)
            raise ConnectionSettingsError(f"{_NOTHING_GIVEN} (not in a cluster either: {error})") from None
    config = load(kubeconfig) if kubeconfig else Kubeconfig()
    return from_kubeconfig(config, environ, master=master)


def as_kubectl(
    kubeconfig: str, context: str, environ: Mapping[str, str], *, service_account: str = SERVICE_ACCOUNT
) -> ConnectionSettings:
    """As kubectl: this kubeconfig, else those of KUBECONFIG, else ~/.kube/config; without any, from inside a cluster.

    Of its contexts the one that is named, else the current one. Raises ConnectionSettingsError.
    """
    config = load(kubeconfig) if kubeconfig else load_merged(environ)
    if context:
        config = replace(config, current_context=context)
    elif config == Kubeconfig(file=config.file):
        try:
            return in_cluster(environ, service_account=service_account)
        except ConnectionSettingsError as error:
            raise ConnectionSettingsError(f"there is no kubeconfig at {config.file}, and {error}") from None
    return from_kubeconfig(config, environ)


def from_kubeconfig(config: Kubeconfig, environ: Mapping[str, str], *, master: str = "") -> ConnectionSettings:
    """The cluster and user of the current context. Raises ConnectionSettingsError with all that is wrong."""
    name = config.current_context
    if name and name not in config.contexts:
        raise ConnectionSettingsError(
            f"invalid configuration: context was not found for specified context: {name}{_choices(config.contexts)}"
        )
    context = config.contexts.get(name)
    cluster, user, mistakes = KubeconfigCluster(), KubeconfigUser(), list[str]()
    if context is not None:
        place = config.origin(f"contexts[{name}]")
        if context.cluster in config.clusters:
            cluster = config.clusters[context.cluster]
        elif not master:
            mistakes.append(f'{place}: cluster "{context.cluster}" was not found{_choices(config.clusters)}')
        if context.user in config.users:
            user = config.users[context.user]
        elif context.user:
            mistakes.append(f'{place}: user "{context.user}" was not found{_choices(config.users)}')
    if master:
        cluster = replace(cluster, server=master)
    if cluster == KubeconfigCluster() and context is None:
        hint = f" (the kubeconfig has no current-context{_choices(config.contexts)})" if config.contexts else ""
        raise ConnectionSettingsError(_NOTHING_GIVEN + hint)
    user_name = context.user if context is not None else ""
    if not mistakes:
        place = config.origin(f"clusters[{context.cluster if context else ''}]")
        mistakes += (f"{place}: {mistake}" for mistake in mistakes_in_cluster(cluster))
        place = config.origin(f"users[{user_name}]")
        mistakes += (f"{place}: {mistake}" for mistake in mistakes_in_user(user))
    if mistakes:
        raise ConnectionSettingsError(f"invalid configuration: {aggregated(mistakes)}")
    return _settings(cluster, user, user_name, (context.namespace if context else "") or "default", environ)


def in_cluster(environ: Mapping[str, str], *, service_account: str = SERVICE_ACCOUNT) -> ConnectionSettings:
    """The API server of the cluster in which this process runs, as its service account."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConnectionSettingsError(
            "unable to load in-cluster configuration, "
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
        )
    token_file, authorities = Path(service_account, "token"), Path(service_account, "ca.crt")
    try:
        token_file.read_bytes()
    except OSError as error:
        raise ConnectionSettingsError(f"unable to read {token_file}: {error.strerror}") from None
    trust = ServerTrust()
    if authorities.is_file():
        trust = ServerTrust(ca_file=str(authorities))
    else:
        log.error("Expected to load root CA config from %s, but there is no such file", authorities)
    server = f"https://{_in_url(host)}:{port}"
    return ConnectionSettings(
        server=server,
        trust=trust,
        proxy_url=proxy_of_environment(server, environ),
        user=KubeconfigUser(token_file=str(token_file)),
        user_name="service account",
        namespace=_namespace(Path(service_account, "namespace")),
    )


def _settings(
    cluster: KubeconfigCluster, user: KubeconfigUser, user_name: str, namespace: str, environ: Mapping[str, str]
) -> ConnectionSettings:
    server = cluster.server if "://" in cluster.server else f"http://{cluster.server}"
    secure = server.startswith("https://")
    extensions = {named.name: named.extension for named in cluster.extensions}
    trust = ServerTrust(
        ca_file="" if cluster.certificate_authority_data else cluster.certificate_authority,
        ca_data=cluster.certificate_authority_data,
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
    )
    return ConnectionSettings(
        server=server.rstrip("/"),
        trust=trust if secure else ServerTrust(),
        proxy_url=cluster.proxy_url or proxy_of_environment(server, environ),
        # As in client-go, secrets are sent only over TLS, to servers whose identity is verified.
        user=user if secure else KubeconfigUser(),
        user_name=user_name,
        exec_extension=extensions.get(_EXEC_EXTENSION),
        namespace=namespace,
    )


def _choices(entries: Mapping[str, object]) -> str:
    return f" (there are: {', '.join(sorted(entries))})" if entries else ""


def _namespace(file: Path) -> str:
    try:
        return file.read_text().strip() or "default"
    except OSError:  # it is only a default
        return "default"


def _in_url(host: str) -> str:
    address = address_of(host)
    return f"[{host}]" if address is not None and address.version == 6 else host
