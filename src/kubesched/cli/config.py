"""`kubesched config`: check a configuration, show the defaults, translate a legacy Policy."""

from __future__ import annotations

import click

from kubesched import config as configuration
from kubesched.api.errors import located
from kubesched.cli.cluster_options import TEXT, feature_gates_option, output_option
from kubesched.cli.input import read
from kubesched.cli.main import SuggestingGroup
from kubesched.config.defaults import differences_from_default
from kubesched.config.policy import translate
from kubesched.framework.profile import ProfileError
from kubesched.simulate.cluster import profiles_of

_FORMATS = {"yaml": configuration.to_yaml, "json": configuration.to_json}


@click.group(cls=SuggestingGroup)
def config() -> None:
    """Check, complete and convert scheduler configurations."""


@config.command()
@click.argument("file")
@output_option()
@feature_gates_option
def check(file: str, output: str, features: configuration.Features) -> None:
    """Check the KubeSchedulerConfiguration in FILE (- for standard input).

    As JSON or YAML it is printed with all defaults.
    """
    source, text = read(file)
    loaded = configuration.load(text, source=source, features=features)
    with located(source, ProfileError):
        profiles_of(loaded)
    if output != TEXT:
        click.echo(_FORMATS[output](loaded), nl=False)
        return
    click.echo(f"{source}: OK")
    for profile in loaded.profiles:
        click.echo(f"  {_summary(profile, features)}")


@config.command()
@click.option("-o", "--output", type=click.Choice(list(_FORMATS)), default="yaml", show_default=True)
@feature_gates_option
def defaults(output: str, features: configuration.Features) -> None:
    """Print the configuration that an empty file stands for."""
    click.echo(_FORMATS[output](configuration.default(features)), nl=False)


@config.command("convert-policy")
@click.argument("file")
@click.option("-o", "--output", type=click.Choice(list(_FORMATS)), default="yaml", show_default=True)
def convert_policy(file: str, output: str) -> None:
    """Translate the legacy Policy in FILE (- for standard input) to a KubeSchedulerConfiguration."""
    source, text = read(file)
    translation = translate(text, source=source)
    for note in translation.notes:
        click.echo(f"{source}: note: {note}", err=True)
    click.echo(_FORMATS[output](translation.configuration), nl=False)


def _summary(profile: configuration.ProfileConfig, features: configuration.Features) -> str:
    differences = differences_from_default(profile.plugins, features)
    return f"{profile.scheduler_name}: {', '.join(differences) or 'default plugins'}"
