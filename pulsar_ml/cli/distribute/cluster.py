"""``pulsar-ml cluster``: a standalone Spark cluster on the loopback of this machine."""

from __future__ import annotations

from pathlib import Path

import click

from pulsar_ml.cli.command import NAMES_OF_HELP, Command, option, write_exit_codes
from pulsar_ml.distributed.machines import cluster
from pulsar_ml.distributed.session import check_environment
from pulsar_ml.exit_codes import BASIC

CLUSTER = "Cluster"


class ClusterGroup(click.Group):
    """The group of start, stop and url."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        write_exit_codes(formatter, BASIC)


@click.group("cluster", cls=ClusterGroup, context_settings=NAMES_OF_HELP)
def command() -> None:
    """A standalone Spark cluster on the loopback of this machine.

    \b
    pulsar-ml cluster start
    pulsar-ml sweep --runner spark --master $(pulsar-ml cluster url) --task-cpus 1
    pulsar-ml cluster stop
    """


in_directory = option(
    "--directory",
    type=click.Path(path_type=Path),
    default=cluster.DIRECTORY,
    show_default=True,
    group=CLUSTER,
    help="Directory of the cluster's files.",
)


@command.command("start", cls=Command)
@in_directory
@option(
    "--workers",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    group=CLUSTER,
    help="Worker processes.",
)
@option(
    "--cores",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    group=CLUSTER,
    help="Cores of each worker.",
)
@option("--memory", default="2g", show_default=True, group=CLUSTER, help="Memory of each worker.")
@option(
    "--port",
    type=click.IntRange(1, 65535),
    group=CLUSTER,
    help="Port of the master.  [default: a free one]",
)
@option(
    "--spread",
    is_flag=True,
    group=CLUSTER,
    help="Workers on 127.0.0.2 and so on (Linux): Spark copies stragglers then.",
)
def start_command(
    directory: Path, workers: int, cores: int, memory: str, port: int | None, spread: bool
) -> None:
    """Start the cluster and print its URL.

    A cluster that runs already is left as it is.
    """
    check_environment()
    url = cluster.start(
        directory, workers=workers, cores=cores, memory=memory, port=port, spread=spread
    )
    click.echo(url)


@command.command("stop", cls=Command)
@in_directory
def stop_command(directory: Path) -> None:
    """End the processes of the cluster."""
    ended = cluster.stop(directory)
    click.echo(f"ended {', '.join(ended)}" if ended else "there is no cluster to stop")


@command.command("url", cls=Command)
@in_directory
def url_command(directory: Path) -> None:
    """Print the master's URL."""
    url = cluster.running(directory)
    if url is None:
        raise cluster.ClusterError(f"no cluster runs in {directory}; pulsar-ml cluster start")
    click.echo(url)
