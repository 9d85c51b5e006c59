"""kubeconfig files: merged as kubectl merges them, and mistakes named with file and field."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest
from tests.builders import Json

from kubesched.kube.connection import ConnectionSettings, as_kubectl, from_flags, from_kubeconfig
from kubesched.kube.errors import ConnectionSettingsError
from kubesched.kube.kubeconfig import load, parse

NOWHERE = {"KUBERNETES_SERVICE_HOST": ""}


def config(*, server: str = "https://a:6443", cluster: Json | None = None, user: Json | None = None) -> Json:
    """A kubeconfig with one of everything."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
    }


def written(path: Path, content: Json) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.yaml.encode(content))
    return str(path)


def settings(content: Json) -> ConnectionSettings:
    return from_kubeconfig(parse(msgspec.json.encode(content).decode(), "/k/config"), {})


def mistake(content: Json) -> str:
    with pytest.raises(ConnectionSettingsError) as caught:
        settings(content)
    return str(caught.value)


def test_context_names_cluster_and_user() -> None:
    content = config(user={"token": "secret"})
    content["contexts"][0]["context"]["namespace"] = "team"
    found = settings(content)
    assert (found.server, found.user.token, found.namespace) == ("https://a:6443", "secret", "team")


def test_relative_paths_start_at_the_file_they_are_in(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "./bin/login"}
    content = config(cluster={"certificate-authority": "pki/ca.crt"})
    content["users"] = [
        {"name": "v", "user": {"tokenFile": "../token", "client-certificate": "/abs/crt", "client-key": "key"}},
        {"name": "w", "user": {"exec": plugin}},
        {"name": "x", "user": {"exec": {**plugin, "command": "login"}}},
    ]
    loaded = load(written(tmp_path / "one" / "config", content))
    assert loaded.clusters["c"].certificate_authority == str(tmp_path / "one/pki/ca.crt")
    user = loaded.users["v"]
    assert user.token_file == str(tmp_path / "token")
    assert (user.client_certificate, user.client_key) == ("/abs/crt", str(tmp_path / "one/key"))
    commands = [found.exec.command for name in "wx" if (found := loaded.users[name]).exec is not None]
    assert commands == [str(tmp_path / "one/bin/login"), "login"]


def test_current_context_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    content = config()
    content["clusters"].append({"name": "d", "cluster": {"server": "https://d"}})
    content["contexts"].append({"name": "other", "context": {"cluster": "d", "user": "u"}})
    other = written(tmp_path / "other", {**content, "current-context": "other"})
    assert from_flags(other, "", {}).server == "https://d"
    missing = written(tmp_path / "missing", {**content, "current-context": "x"})
    with pytest.raises(
        ConnectionSettingsError, match=r"context was not found for specified context: x \(there are: ma"
    ):
        from_flags(missing, "", {})


def test_master_replaces_the_server_and_keeps_the_user(tmp_path: Path) -> None:
    path = written(tmp_path / "config", config(user={"token": "t"}))
    found = from_flags(path, "https://elsewhere:1", {})
    assert (found.server, found.user.token) == ("https://elsewhere:1", "t")


def test_master_alone_is_enough() -> None:
    assert from_flags("", "http://localhost:8080", {}).server == "http://localhost:8080"
    assert from_flags("", "localhost:8080", {}).server == "http://localhost:8080"


def test_secrets_are_not_shown_in_the_clear() -> None:
    assert settings(config(server="http://a:8080", user={"token": "secret"})).user.token == ""


def test_inline_data_is_base64() -> None:
    data = base64.b64encode(b"PEM").decode()
    found = settings(config(cluster={"certificate-authority-data": data}))
    assert found.trust.ca_data == b"PEM"
    words = mistake(config(cluster={"certificate-authority-data": "no!"}))
    assert words.startswith("kubeconfig /k/config: clusters[0].cluster.certificate-authority-data: expected a base64")


def test_cluster_settings_are_taken_over() -> None:
    found = settings(
        config(cluster={"tls-server-name": "n", "insecure-skip-tls-verify": True, "proxy-url": "http://p:1"})
    )
    assert found.trust.server_name == "n"
    assert found.trust.insecure
    assert found.proxy_url == "http://p:1"


def test_proxy_of_the_environment_is_used_unless_the_cluster_has_its_own() -> None:
    environ = {"HTTPS_PROXY": "http://env:3128", "NO_PROXY": ".internal,10.0.0.0/8"}

    def proxy(server: str, **cluster: str) -> str:
        content = config(server=server, cluster=cluster)
        return from_kubeconfig(parse(msgspec.json.encode(content).decode(), "x"), environ).proxy_url

    assert proxy("https://a") == "http://env:3128"
    assert proxy("https://a", **{"proxy-url": "socks5://own"}) == "socks5://own"
    assert proxy("https://api.internal:6443") == ""
    assert proxy("https://10.1.2.3:6443") == ""
    assert proxy("https://127.0.0.1:6443") == ""
    assert proxy("https://localhost") == ""
    assert proxy("http://a") == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"cluster": {"server": ""}}, "/k/config: clusters[c]: server: expected the address of the API server"),
        ({"cluster": {"certificate-authority": "/no/such"}}, "unable to read certificate-authority /no/such: No such"),
        ({"cluster": {"certificate-authority": "/x", "certificate-authority-data": "eA=="}}, "are both specified"),
        ({"cluster": {"insecure-skip-tls-verify": True, "certificate-authority-data": "eA=="}}, "makes no sense"),
        ({"cluster": {"proxy-url": "ftp://x"}}, 'clusters[c]: proxy-url: expected a proxy such as "http://host:3128"'),
        ({"user": {"token": "t", "username": "u"}}, "users[u]: more than one authentication method"),
        ({"user": {"client-certificate-data": "eA=="}}, "client-key-data or client-key must be specified"),
        ({"user": {"client-certificate": "/no", "client-key": "/no"}}, "unable to read client-certificate /no"),
        ({"user": {"as-groups": ["g"]}}, "without impersonating a user"),
        ({"user": {"exec": {"command": "x"}}}, "exec: apiVersion must be specified"),
        ({"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}}}, "interactiveMode must"),
        ({"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v2", "command": "x"}}}, "expected client"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, 'auth-provider: name: expected "oidc", got "gcp"'),
        ({"user": {"auth-provider": {"name": "oidc"}}}, "auth-provider: config: must provide idp-issuer-url"),
    ],
)  # fmt: skip
def test_mistakes_name_file_entry_and_what_was_expected(content: Json, words: str) -> None:
    found = mistake(config(**content))
    assert found.startswith("invalid configuration: ")
    assert words in found


def test_context_without_its_cluster_says_which_there_are() -> None:
    content = config()
    content["contexts"][0]["context"]["cluster"] = "typo"
    assert mistake(content) == (
        'invalid configuration: /k/config: contexts[main]: cluster "typo" was not found (there are: c)'
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clusters: [", "kubeconfig /k: line 2, column 1: "),
        ("kind: Pod", 'kind: expected "Config", got "Pod"'),
        ("clusters: 5", "clusters: expected a list, got 5"),
        ("users: [{name: a, user: {token: [1]}}]", "users[0].user.token: expected a string"),
        ("users: [{name: a}, {name: a}]", 'users: duplicate name "a"'),
    ],
)
def test_unreadable_files_are_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ConnectionSettingsError) as caught:
        parse(text, "/k")
    assert words in str(caught.value)


def test_missing_file_is_an_error_if_it_was_asked_for() -> None:
    with pytest.raises(ConnectionSettingsError, match="kubeconfig /no/such: No such file or directory"):
        load("/no/such")
    with pytest.raises(ConnectionSettingsError, match="no configuration has been provided"):
        from_kubeconfig(parse("", "/k"), {})


def test_kubeconfig_without_a_current_context_says_so() -> None:
    content = config()
    del content["current-context"]
    assert mistake(content).endswith("(the kubeconfig has no current-context (there are: main))")


def test_nothing_given_means_the_cluster_around_us(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("pem")
    (tmp_path / "namespace").write_text("kube-system\n")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    found = from_flags("", "", environ, service_account=str(tmp_path))
    assert found.server == "https://[fd00::1]:443"
    assert found.trust.ca_file == str(tmp_path / "ca.crt")
    assert found.user.token_file == str(tmp_path / "token")
    assert found.namespace == "kube-system"


def test_nothing_given_and_no_cluster_around_us_is_said_as_kube_scheduler_says_it(tmp_path: Path) -> None:
    with pytest.raises(ConnectionSettingsError) as caught:
        from_flags("", "", NOWHERE, service_account=str(tmp_path))
    assert str(caught.value).startswith(
        "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
    )
    assert "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined" in str(caught.value)


# -- as kubectl finds them ---------------------------------------------------------------------------------------------


def test_first_of_several_files_counts_where_they_name_the_same(tmp_path: Path) -> None:
    first = written(tmp_path / "a", {**config(server="https://first"), "current-context": ""})
    second = {**config(server="https://second")}
    second["contexts"].append({"name": "other", "context": {"cluster": "elsewhere", "namespace": "shop"}})
    second["clusters"].append({"name": "elsewhere", "cluster": {"server": "https://elsewhere"}})
    listed = f"{first}:{tmp_path / 'missing'}:{written(tmp_path / 'b', second)}"
    assert as_kubectl("", "", {"KUBECONFIG": listed}).server == "https://first"
    other = as_kubectl("", "other", {"KUBECONFIG": listed})
    assert (other.server, other.namespace) == ("https://elsewhere", "shop")


def test_file_in_the_home_directory_is_used_where_no_other_is_named(tmp_path: Path) -> None:
    written(tmp_path / ".kube" / "config", config(server="https://home"))
    assert as_kubectl("", "", {"HOME": str(tmp_path)}).server == "https://home"
    given = written(tmp_path / "given", config(server="https://given"))
    assert as_kubectl(given, "", {"HOME": str(tmp_path)}).server == "https://given"


def test_inside_a_cluster_the_service_account_is_used_where_there_is_no_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    (tmp_path / "namespace").write_text("shop")
    inside = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    found = as_kubectl("", "", inside, service_account=str(tmp_path))
    assert (found.server, found.namespace) == ("https://10.0.0.1:443", "shop")


def test_context_that_there_is_not_is_named_even_inside_a_cluster(tmp_path: Path) -> None:
    inside = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConnectionSettingsError, match="context was not found for specified context: prod"):
        as_kubectl("", "prod", inside)
