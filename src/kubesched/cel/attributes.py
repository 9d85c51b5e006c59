"""Finds the attributes that an expression reads: devices with equal values of these get the same answer."""

from __future__ import annotations

from kubesched.cel.syntax import Bind, Call, Fold, Ident, Index, Literal, Select, SyntaxNode, children

Names = frozenset[str]
"""Full names of attributes, `domain/name`."""


def attributes_read_by(tree: SyntaxNode) -> Names | None:
    """The attributes that an expression names; None if it may depend on any."""
    names: set[str] = set()
    return frozenset(names) if _collect(tree, {}, names) else None


def _collect(node: SyntaxNode, domains: dict[str, str], names: set[str]) -> bool:
    """Add the names that are read; False if something else is done with attributes than reading one by its name.

    `domains` are variables that stand for the attributes of a domain.
    """
    match node:
        case Ident(name=name):
            return name != "device" and name not in domains
        case Select(operand=Ident(name="device"), field=field) if "device" not in domains:
            return field != "attributes"
        case Select(operand=operand, field=field) if (domain := _domain(operand, domains)) is not None:
            names.add(f"{domain}/{field}")
            return True
        case Index(operand=operand, key=Literal(value=str(field))) if (domain := _domain(operand, domains)) is not None:
            names.add(f"{domain}/{field}")
            return True
        case Call(function="@in", target=None, args=(Literal(value=str(field)), operand)) if (
            domain := _domain(operand, domains)
        ) is not None:
            names.add(f"{domain}/{field}")
            return True
        case Bind(name=name, value=value, body=body):
            domain = _domain(value, domains)
            other_domains = {variable: other for variable, other in domains.items() if variable != name}
            if domain is not None:
                return _collect(body, {**other_domains, name: domain}, names)
            return _collect(value, domains, names) and _collect(body, other_domains, names)
        case Fold(variables=variables):
            if not _collect(node.range, domains, names):
                return False
            other_domains = {variable: other for variable, other in domains.items() if variable not in variables}
            parts = (part for part in (node.predicate, node.transform) if part is not None)
            return all(_collect(part, other_domains, names) for part in parts)
    return all(_collect(part, domains, names) for part in children(node))


def _domain(node: SyntaxNode, domains: dict[str, str]) -> str | None:
    """The domain whose attributes the node stands for: `device.attributes["domain"]`, or a variable for that."""
    match node:
        case Ident(name=name):
            return domains.get(name)
        case Index(operand=Select(operand=Ident(name="device"), field="attributes"), key=Literal(value=str(domain))):
            return domain
    return None
