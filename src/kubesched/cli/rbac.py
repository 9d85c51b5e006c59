"""`kubesched rbac`: the rights that a step needs, as roles for kubectl to apply."""

from __future__ import annotations

import click
import yaml

from kubesched.api.errors import UserError
from kubesched.ask.rights import STEPS, bindings, roles


@click.command()
@click.argument("step", type=click.Choice(list(STEPS)))
@click.option("--user", default="", help="Also bind the roles to this user.")
@click.option(
    "--service-account", default="", metavar="NAMESPACE/NAME", help="Also bind the roles to this service account."
)
@click.option("--lease", default="kubesched", show_default=True, help="Name of the lease, for run.")
@click.option("--pod-groups", is_flag=True, help="With the rights that pod groups need.")
def rbac(step: str, user: str, service_account: str, lease: str, pod_groups: bool) -> None:
    """Print the roles that a step needs, and nothing more: to ask, to run in shadow mode, to schedule.

    Those of ask and shadow write nothing. `kubesched rbac ask --user jane | kubectl apply -f -`
    """
    documents = roles(step, lease=lease, pod_groups=pod_groups)
    if user:
        documents += bindings(step, {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user})
    if service_account:
        namespace, slash, name = service_account.partition("/")
        if not slash or not name:
            raise UserError(f"--service-account {service_account}: expected NAMESPACE/NAME")
        documents += bindings(step, {"kind": "ServiceAccount", "name": name, "namespace": namespace})
    click.echo(f"# {STEPS[step]}")
    click.echo(yaml.safe_dump_all(documents, sort_keys=False), nl=False)
