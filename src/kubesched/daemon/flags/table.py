"""Every flag of kube-scheduler v1.36 with its group, and those that only kubesched has."""

from __future__ import annotations

from kubesched.daemon.flags.parsing import Flag, FlagSet
from kubesched.daemon.flags.values import (
    BOOL,
    CERT_KEYS,
    DURATION,
    FLOAT32,
    INT,
    INT32,
    INT32S,
    IP,
    LEVEL,
    MODULE_LEVELS,
    MULTIMAP,
    QUANTITY,
    STRING,
    STRING_TO_STRING,
    STRINGS,
    VERSION,
    FlagType,
)

_ONLY_HTTP1 = "the endpoints speak HTTP/1.1 only"
_ONE_VERSION = "kubesched behaves as v1.36 does and knows no other version"
_WITHOUT_CONFIG = "Deprecated; ignored where --config is given."
_BUFFER = "Needs the feature gate LoggingAlphaOptions."


def _flags(group: str, *rows: tuple[str, FlagType, str] | tuple[str, FlagType, str, str]) -> list[Flag]:
    """Flags of one group; a fourth element says why a flag has no effect."""
    return [Flag(row[0], row[1], group, row[2], warning=row[3] if len(row) == 4 else "") for row in rows]


FLAGS = FlagSet(
    [
        *_flags(
            "Misc",
            ("config", STRING, "The configuration file, a KubeSchedulerConfiguration."),
            ("master", STRING, "The address of the API server; goes before what a kubeconfig says."),
            ("write-config-to", STRING, "Write the configuration with all defaults to this file, and exit."),
        ),
        *_flags(
            "Secure serving",
            ("bind-address", IP, "The address to listen on; 0.0.0.0 and :: stand for all."),
            ("cert-dir", STRING, "Where to keep a self-signed certificate; without it, it is kept in memory."),
            ("disable-http2-serving", BOOL, "Do not serve HTTP/2.", _ONLY_HTTP1),
            ("http2-max-streams-per-connection", INT, "How many streams an HTTP/2 connection may have.", _ONLY_HTTP1),
            ("permit-address-sharing", BOOL, "Listen with SO_REUSEADDR."),
            ("permit-port-sharing", BOOL, "Listen with SO_REUSEPORT, so that several may share the port."),
            ("secure-port", INT, "The port of the HTTPS endpoints; 0 for none."),
            ("tls-cert-file", STRING, "The certificate to serve with, followed by those of its issuers."),
            ("tls-cipher-suites", STRINGS, "The cipher suites to offer, by their IANA names."),
            (
                "tls-curve-preferences",
                INT32S,
                "The key exchange mechanisms to offer, by number.",
                "the TLS library chooses key exchange mechanisms itself",
            ),
            ("tls-min-version", STRING, "The oldest TLS version to speak: VersionTLS12 or VersionTLS13."),
            ("tls-private-key-file", STRING, "The key of --tls-cert-file."),
            (
                "tls-sni-cert-key",
                CERT_KEYS,
                'Another certificate with its key, for clients that ask for certain names: "a.crt,a.key" or '
                '"a.crt,a.key:*.example.com,example.com". May be repeated.',
            ),
        ),
        *_flags(
            "Authentication",
            (
                "authentication-kubeconfig",
                STRING,
                "A kubeconfig whose server reviews tokens. Without one, requests with a token are anonymous.",
            ),
            ("authentication-skip-lookup", BOOL, "Do not look for client authorities in the cluster."),
            ("authentication-token-webhook-cache-ttl", DURATION, "How long answers about tokens are kept."),
            (
                "authentication-tolerate-lookup-failure",
                BOOL,
                "Go on where client authorities cannot be looked up; all requests may then be anonymous.",
            ),
            (
                "client-ca-file",
                STRING,
                "Authorities of client certificates, whose common name is the user.",
            ),
            ("requestheader-allowed-names", STRINGS, "Common names of front proxies; none means all are allowed."),
            ("requestheader-client-ca-file", STRING, "Authorities of front proxies, which say who the user is."),
            ("requestheader-extra-headers-prefix", STRINGS, "Prefixes of headers with more about the user."),
            ("requestheader-group-headers", STRINGS, "Headers with the groups of the user."),
            ("requestheader-uid-headers", STRINGS, "Headers with the uid of the user."),
            ("requestheader-username-headers", STRINGS, "Headers with the name of the user."),
        ),
        *_flags(
            "Authorization",
            ("authorization-always-allow-paths", STRINGS, "Paths that everybody may read; a final * is a wildcard."),
            (
                "authorization-kubeconfig",
                STRING,
                "A kubeconfig whose server reviews access. Without one, all other paths are forbidden.",
            ),
            ("authorization-webhook-cache-authorized-ttl", DURATION, "How long a yes is kept."),
            ("authorization-webhook-cache-unauthorized-ttl", DURATION, "How long a no is kept."),
        ),
        *_flags(
            "Deprecated",
            (
                "contention-profiling",
                BOOL,
                f"Profile contention as well. {_WITHOUT_CONFIG}",
                "one thread does all the work, so there is no contention to profile",
            ),
            ("kube-api-burst", INT32, f"How many requests may be made at once. {_WITHOUT_CONFIG}"),
            ("kube-api-content-type", STRING, f"The content type of requests. {_WITHOUT_CONFIG}"),
            ("kube-api-qps", FLOAT32, f"How many requests a second may be made on average. {_WITHOUT_CONFIG}"),
            ("kubeconfig", STRING, f"The kubeconfig of the cluster. {_WITHOUT_CONFIG}"),
            (
                "pod-max-in-unschedulable-pods-duration",
                DURATION,
                "After how long an unschedulable pod is tried again though nothing happened.",
            ),
            ("profiling", BOOL, f"Serve /debug/pprof. {_WITHOUT_CONFIG}"),
        ),
        *_flags(
            "Leader election",
            ("leader-elect", BOOL, "Schedule only while holding the lease."),
            ("leader-elect-lease-duration", DURATION, "How long others wait before they take a lease not renewed."),
            ("leader-elect-renew-deadline", DURATION, "How long the holder tries to renew before it gives up."),
            ("leader-elect-resource-lock", STRING, 'What is locked: "leases".'),
            ("leader-elect-resource-name", STRING, "The name of the lease."),
            ("leader-elect-resource-namespace", STRING, "The namespace of the lease."),
            ("leader-elect-retry-period", DURATION, "How long to wait between attempts."),
        ),
        *_flags(
            "Feature gate",
            ("emulated-version", STRINGS, "The version to behave as: 1.36.", _ONE_VERSION),
            ("feature-gates", MULTIMAP, "Features to switch on or off: Gate=true,Other=false. May be repeated."),
            ("min-compatibility-version", STRINGS, "The oldest version to get along with.", _ONE_VERSION),
        ),
        *_flags(
            "Metrics",
            (
                "allow-metric-labels",
                STRING_TO_STRING,
                "Values that a label may have; others read as unexpected: metric,label='value,value'.",
            ),
            ("allow-metric-labels-manifest", STRING, "A file with the same under allowListMapping."),
            ("disabled-metrics", STRINGS, "Metrics to leave out, by their full names."),
            (
                "show-hidden-metrics-for-version",
                STRING,
                "Show what the version before has hidden: 1.35.",
                "no metric is hidden",
            ),
        ),
        *_flags(
            "Logs",
            ("log-flush-frequency", DURATION, "How long lines may wait to be written."),
            ("log-json-info-buffer-size", QUANTITY, f"How many bytes of JSON lines to collect. {_BUFFER}"),
            ("log-json-split-stream", BOOL, f"Errors to stderr, all else to stdout, as JSON. {_BUFFER}"),
            ("log-text-info-buffer-size", QUANTITY, f"How many bytes of text lines to collect. {_BUFFER}"),
            ("log-text-split-stream", BOOL, f"Errors to stderr, all else to stdout, as text. {_BUFFER}"),
            ("logging-format", STRING, 'How lines look: "text" or "json".'),
        ),
        Flag("v", LEVEL, "Logs", "How much to log; 0 is least.", short="v"),
        Flag("vmodule", MODULE_LEVELS, "Logs", "How much to log by file: queue=4,bind*=5. Only for text."),
        *_flags(
            "Legacy policy",
            ("policy-config-file", STRING, "A Policy of Kubernetes up to 1.22; takes the place of all profiles."),
            ("policy-configmap", STRING, "A config map that has such a Policy under policy.cfg."),
            ("policy-configmap-namespace", STRING, "Where that config map is."),
            ("use-legacy-policy-config", BOOL, "Prefer --policy-config-file where there is a config map as well."),
        ),
        *_flags(
            "Kubesched",
            ("record", STRING, "Record all that happens to FILE, for `kubesched replay`; an older one becomes FILE.1."),
            ("shadow", BOOL, "Bind nothing; decide for the pods that another scheduler binds, and report differences."),
        ),
        Flag("help", BOOL, "Global", "Show this text.", short="h"),
        Flag("version", VERSION, "Global", "Show the version and exit; =raw shows all that is known of it."),
    ]
)
