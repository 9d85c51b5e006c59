from __future__ import annotations

import stat
from pathlib import Path

import pytest

from kubesched import config
from kubesched.api.duration import Duration
from kubesched.daemon.checks import OptionsError
from kubesched.daemon.completion import Completed, complete_options, completed_as_any, with_policy, write_configuration
from kubesched.daemon.feature_gates import ReleaseSource
from kubesched.daemon.options import parse_options
from kubesched.framework.profile import ProfileError

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
POLICY = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsResources"}], "priorities": []}'


def complete(*arguments: str) -> Completed:
    return complete_options(parse_options(arguments), "v1.36.4")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        f"{HEADER}clientConnection: {{kubeconfig: /from/file, qps: 7}}\nleaderElection: {{retryPeriod: 3s}}\n"
    )
    return file


def test_without_flags_there_is_the_default_configuration() -> None:
    assert complete().configuration == config.default()


def test_deprecated_flags_count_without_a_file() -> None:
    found = complete("--kubeconfig=/mine", "--kube-api-qps=5", "--kube-api-burst=9", "--profiling=false").configuration
    assert found.client_connection.kubeconfig == "/mine"
    assert (found.client_connection.qps, found.client_connection.burst) == (5, 9)
    assert not found.enable_profiling


def test_deprecated_flags_do_not_count_beside_a_file_and_a_warning_says_so(file: Path) -> None:
    result = complete(f"--config={file}", "--kubeconfig=/mine", "--kube-api-qps=5")
    assert result.configuration.client_connection.kubeconfig == "/from/file"
    assert result.configuration.client_connection.qps == 7
    assert result.warnings == (
        "--kube-api-qps is ignored: the file of --config decides",
        "--kubeconfig is ignored: the file of --config decides",
    )


def test_leader_election_flags_that_were_given_override_a_file_field_by_field(file: Path) -> None:
    found = complete(f"--config={file}", "--leader-elect-lease-duration=1m", "--leader-elect-resource-name=other")
    election = found.configuration.leader_election
    assert (election.lease_duration, election.retry_period, election.resource_name) == (
        Duration(60),
        Duration(3),
        "other",
    )


@pytest.mark.parametrize(
    ("flag", "mistake"),
    [
        ("--leader-elect-lease-duration=0s", "leaderElection.leaseDuration: Invalid value"),
        ("--leader-elect-resource-lock=", "leaderElection.resourceLock: Required value"),
        ("--leader-elect-resource-name=", "leaderElection.resourceName: Required value"),
        ("--leader-elect-resource-namespace=", "leaderElection.resourceNamespace: Required value"),
    ],
)
def test_leader_election_flags_without_a_value_do_not_mean_the_default(file: Path, flag: str, mistake: str) -> None:
    with pytest.raises(config.InvalidConfigError, match=mistake):
        complete(f"--config={file}", flag)


def test_a_flag_does_not_excuse_what_the_file_says_in_its_place(file: Path) -> None:
    file.write_text(f"{HEADER}leaderElection: {{leaseDuration: soon}}\n")
    with pytest.raises(config.UnreadableConfigError, match=r"leaderElection\.leaseDuration"):
        complete(f"--config={file}", "--leader-elect-lease-duration=20s")


def test_deprecated_flags_are_put_over_the_defaults_and_change_no_other_field() -> None:
    found = complete("--kube-api-qps=0", "--kube-api-burst=0", "--profiling=false").configuration
    assert (found.client_connection.qps, found.client_connection.burst) == (0, 0)
    assert (found.enable_profiling, found.enable_contention_profiling) == (False, True)


def test_leader_election_flags_are_checked_together_with_the_file(file: Path) -> None:
    with pytest.raises(config.InvalidConfigError, match=r"leaderElection\.leaseDuration"):
        complete(f"--config={file}", "--leader-elect-lease-duration=1s")


def test_master_is_kept_beside_a_file(file: Path) -> None:
    assert complete(f"--config={file}", "--master=https://there").options.master == "https://there"


def test_file_that_is_not_there_is_one_clear_line() -> None:
    with pytest.raises(OptionsError) as caught:
        complete("--config=/does/not/exist")
    assert str(caught.value) == "--config: No such file or directory: /does/not/exist"


def test_secure_port_zero_serves_nothing() -> None:
    assert complete().serves
    assert not complete("--secure-port=0").serves


def test_configuration_is_written_with_all_defaults(tmp_path: Path) -> None:
    target = tmp_path / "written.yaml"
    assert write_configuration(complete(f"--write-config-to={target}")) == target
    assert stat.S_IMODE(target.stat().st_mode) == 0o600, "it may hold the keys of extenders"
    assert config.load(target.read_text()) == config.default()


def test_arguments_are_written_by_name_and_only_of_plugins_that_are_enabled(tmp_path: Path, file: Path) -> None:
    file.write_text(
        f"{HEADER}profiles:\n"
        "- plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}}\n"
        "  pluginConfig: [{name: VolumeBinding}, {name: NodeAffinity}, {name: NodeName}, {name: Unknown, args: {}}]\n"
    )
    target = tmp_path / "written.yaml"
    write_configuration(complete(f"--config={file}", f"--write-config-to={target}"))
    [profile] = config.load(target.read_text()).profiles
    assert list(profile.plugin_config) == [
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "VolumeBinding",
    ]


def test_a_configuration_that_cannot_be_run_is_not_written(tmp_path: Path, file: Path) -> None:
    file.write_text(f"{HEADER}profiles: [{{plugins: {{score: {{enabled: [{{name: Unknown}}]}}}}}}]\n")
    target = tmp_path / "written.yaml"
    with pytest.raises(ProfileError, match="Unknown"):
        write_configuration(complete(f"--config={file}", f"--write-config-to={target}"))
    assert not target.exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["--secure-port=70000"],
            "--secure-port 70000 must be between 0 and 65535, inclusive. 0 for turning off secure port",
        ),
        (["--tls-min-version=SSL3"], 'unknown tls version "SSL3"'),
        (["--requestheader-group-headers= "], 'empty value in "requestheader-group-headers"'),
        (["--authorization-always-allow-paths=/a*b"], 'only trailing * allowed in "a*b"'),
        (["--feature-gates=Nonsense=true"], "unrecognized feature gate: Nonsense"),
        (["--feature-gates=wardle:A=true"], "component not registered: wardle"),
        (["--emulated-version=1.99"], "emulation version 1.99 is not between [1.34, 1.37]"),
        (["--logging-format=xml"], 'format: Invalid value: "xml": Unsupported log format'),
        (["--log-flush-frequency=0s"], 'flushFrequency: Invalid value: "0s": Must be greater than zero'),
        (["--logging-format=json", "--vmodule=a=1"], "vmodule: Forbidden: Only supported for text log format"),
        (
            ["--log-text-split-stream"],
            "options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled",
        ),
        (
            ["--show-hidden-metrics-for-version=1.30"],
            "--show-hidden-metrics-for-version must be omitted or have the value '1.35'. "
            "Only the previous minor version is allowed",
        ),
        (
            ["--secure-port=-1", "--tls-min-version=x"],
            "[--secure-port -1 must be between 0 and 65535, inclusive. 0 for turning off secure port, "
            'unknown tls version "x"]',
        ),
    ],
)
def test_options_that_make_no_sense_are_refused_in_upstreams_words(arguments: list[str], complaint: str) -> None:
    with pytest.raises(OptionsError) as caught:
        complete(*arguments)
    assert str(caught.value) == complaint


def test_policy_file_takes_the_place_of_all_profiles(tmp_path: Path, file: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(POLICY)
    result = complete(f"--config={file}", f"--policy-config-file={policy}")
    filters = {plugin.name for plugin in result.configuration.profiles[0].plugins.filter.enabled}
    assert "NodeResourcesFit" in filters
    assert "NodePorts" not in filters
    assert result.configuration.client_connection.qps == 7


def test_policy_config_map_goes_before_the_file_unless_the_file_is_preferred(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(POLICY)
    both = ["--policy-configmap=policy", f"--policy-config-file={policy}"]
    assert complete(*both).awaits_policy
    assert not complete(*both, "--use-legacy-policy-config").awaits_policy


def test_policy_that_was_read_from_the_cluster_completes_the_rest() -> None:
    before = complete("--policy-configmap=policy")
    after = with_policy(before, POLICY, source="configmap kube-system/policy")
    assert not after.awaits_policy
    assert after.configuration.profiles != before.configuration.profiles


def test_feature_gates_reach_the_configuration_with_or_without_a_file(file: Path) -> None:
    for arguments in ([], [f"--config={file}"], [f"--config={file}", "--leader-elect=false"]):
        found = complete(*arguments, "--feature-gates=SchedulerAsyncPreemption=false").configuration
        assert found.features == config.Features(async_preemption=False)


def test_an_emulated_version_is_the_release_that_is_followed() -> None:
    settings = complete_options(parse_options(["--emulated-version=1.37"], "kubesched run"))
    assert settings.gates.release.name == "1.37"
    assert settings.configuration.features.storage_capacity_scoring
    names = [plugin.name for plugin in settings.configuration.profiles[0].plugins.multi_point.enabled]
    assert names.index("NodeName") < names.index("NodeUnschedulable")
    assert settings.release_source is ReleaseSource.FLAG
    emulating = parse_options(["--emulated-version=kube=1.36"], "kubesched run")
    assert complete_options(emulating, "v1.37.0").gates.release.name == "1.36"


@pytest.mark.parametrize(
    ("version", "release", "source"),
    [
        ("v1.36.4-gke.100", "1.36", "server"),
        ("v1.37.0-rc.1", "1.37", "server"),
        ("v1.31.0", "1.37", "newest"),
        ("", "1.37", "newest"),
    ],
)
def test_without_the_flag_the_release_of_the_server_is_followed_or_else_the_newest(
    version: str, release: str, source: str
) -> None:
    settings = complete_options(parse_options([]), version)
    assert (settings.gates.release.name, settings.configuration.features.release.name) == (release, release)
    assert settings.release_source == source


def test_a_gate_of_the_older_release_waits_for_the_server_to_say_which_it_is() -> None:
    options = parse_options(["--feature-gates=GenericWorkload=true,GangScheduling=true"])
    assert completed_as_any(options).gates.release.name == "1.36"
    with pytest.raises(OptionsError, match="unrecognized feature gate: GangScheduling"):
        complete_options(options, "v1.37.0")


def test_mistakes_for_every_release_are_said_as_the_newest_has_them() -> None:
    with pytest.raises(OptionsError, match=r"'1\.36'"):
        completed_as_any(parse_options(["--show-hidden-metrics-for-version=1.20"]))
