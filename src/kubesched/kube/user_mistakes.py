"""What can be wrong with a user of a kubeconfig."""

from __future__ import annotations

from pathlib import Path

from kubesched.kube.kubeconfig import ExecPlugin, User

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
            except OSError as problem:
                mistakes.append(f"unable to read {field} {path}: {problem.strerror}")
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
