"""What `explain` and `place` have in common: their options, and the cluster they make of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kubesched import config as configuration
from kubesched.cli.input import read, refuse
from kubesched.framework.profile import ProfileError
from kubesched.framework.registry import DuplicatePluginError, NotAPluginError
from kubesched.simulate.cluster import SimulatedCluster
from kubesched.simulate.manifests import ManifestError, Manifests, load

F = TypeVar("F", bound=Callable[..., Any])


def simulation_options(command: F) -> F:
    """The options that say which cluster is meant and how it is scheduled."""
    options = (
        click.option(
            "-f",
            "--filename",
            "files",
            multiple=True,
            required=True,
            help="Manifests: a file, a directory, or - for standard input. May be given several times.",
        ),
        click.option("--config", "config_file", help="A KubeSchedulerConfiguration; the default one if not given."),
        click.option("--seed", type=int, default=0, show_default=True, help="For the draw among equally good nodes."),
        click.option(
            "-o",
            "--output",
            type=click.Choice(["table", "json"]),
            default="table",
            show_default=True,
            help="The format.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def simulated(files: tuple[str, ...], config_file: str | None, seed: int) -> tuple[SimulatedCluster, Manifests]:
    """The cluster that the options describe; or all that is wrong with them, and the end."""
    try:
        settings = configuration.default()
        if config_file is not None:
            source, text = read(config_file)
            settings = configuration.load(text, source=source)
        manifests = load(files)
        return SimulatedCluster(manifests.objects, settings, seed=seed), manifests
    except (ManifestError, configuration.ConfigError) as error:
        refuse(error.lines)
    except ProfileError as error:
        refuse([f"{config_file or 'configuration'}: {error}"])
    except (DuplicatePluginError, NotAPluginError, ImportError) as error:
        refuse([f"installed plugins: {error}"])
