"""`kubesched snapshot`: keep a live cluster in a file, to ask about it later or elsewhere."""

from __future__ import annotations

import sys

import click

from kubesched.ask.output import counted
from kubesched.ask.sources.anonymize import anonymize_cluster
from kubesched.ask.sources.reading import ClusterReading
from kubesched.ask.sources.snapshot import write_snapshot, write_to
from kubesched.cli.cluster_options import config_option, feature_gates_option, scheduler_config
from kubesched.cli.cluster_source import ClusterSource, live_options
from kubesched.cli.input import refuse
from kubesched.config import Features
from kubesched.scheduler import garbage


@click.command()
@live_options
@config_option
@feature_gates_option
@click.option("-o", "--output", "file", required=True, metavar="FILE", help="File to write, or - for standard output.")
@click.option("--anonymize", is_flag=True, help="Put numbers in the place of names, labels, images and annotations.")
def snapshot(source: ClusterSource, config_file: str | None, features: Features, file: str, anonymize: bool) -> None:
    """Write all that scheduling looks at on a live cluster to a file, for -f of the other commands.

    The file can be read by its owner alone. With --anonymize, every decision about it is still the same.
    """
    garbage.collect_seldom()
    config = scheduler_config(source, config_file, features)
    reading = source.read(workloads=True, custom=config.custom_resources)
    assert reading is not None  # there are no files to read instead
    if anonymize:
        left_out = [name for name in reading.objects if name in config.custom_resources]
        reading = anonymize_cluster(reading)
        for name in left_out:
            click.echo(f"Warning: {name} is left out: only its plugin knows what in it is a name", err=True)
    if file == "-" and sys.stdout.isatty():
        refuse(["-o -: a snapshot is compressed, which is nothing for a terminal; name a file, or redirect it"])
    if file == "-":
        write_to(sys.stdout.buffer, reading, anonymized=anonymize)
        size = ""
    else:
        size = f", {size_in_words(write_snapshot(reading, file, anonymized=anonymize))}"
    click.echo(f"{file}: {_summary(reading)}{size}", err=True)


def size_in_words(size: int) -> str:
    """In MB; what is less than one in kB."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


def _summary(reading: ClusterReading) -> str:
    others = sum(map(len, reading.objects.values())) - reading.count("Node") - reading.count("Pod")
    nodes, pods = counted(reading.count("Node"), "node"), counted(reading.count("Pod"), "pod")
    return f"{nodes}, {pods}, {counted(others, 'other object')}"
