"""A table's blocks labelled by several processes, here or on a cluster, as Ray Data runs them.

Ray moves the blocks' numbers and their labels; texts are read, and vectors made and dropped, where
the work is done. Ray starts workers that die again, and holds back what is not yet taken.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from aria_dvc.credit.blocks import Block
from aria_dvc.credit.labeller import Labeller
from aria_dvc.errors import AriaError
from aria_dvc.failures import one_line

CLUSTER = "auto"  # the cluster that this machine belongs to
PATIENCE_S = 10.0


def labelled_on_ray(
    labeller: Labeller, blocks: tuple[Block, ...], workers: int | None, address: str | None
) -> Iterator[pa.Table]:
    """The labels of the blocks, in their order, as they come in.

    Args:
        workers: processes, each with one core; None for as many as the cluster has cores.
        address: of a running cluster, or CLUSTER; None starts one on this machine.

    Raises:
        AriaError: Ray is not installed or does not start, no such cluster, or what `labeller`
            raises.
    """
    ray = _started(workers, address)
    try:
        yield from _run(ray, labeller, blocks, workers or int(ray.cluster_resources()["CPU"]))
    except ray.exceptions.RayError as error:
        raise _mistake(error) or error from None
    finally:
        ray.shutdown()


def _started(workers: int | None, address: str | None) -> Any:
    """The package, connected."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
    try:
        import ray
        import ray.data
    except ImportError:
        raise AriaError(
            "--workers and --ray need Ray: pip install '.[ray]', or leave them out"
        ) from None
    if address not in (None, CLUSTER):
        _check_answered(str(address))
    own: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False}
    where = own if address is None else {"address": address}
    try:
        ray.init(logging_level=logging.ERROR, log_to_driver=False, **where)
    except Exception as error:  # Ray raises Exception itself, on a machine that is too slow for it
        raise _no_cluster(address, error) from None
    return ray


def _check_answered(address: str) -> None:
    """Raises AriaError where nobody listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE_S).close()
    except (OSError, ValueError) as error:
        raise _no_cluster(address, error) from None


def _no_cluster(address: str | None, error: Exception) -> AriaError:
    said = " ".join(str(error).split())[:160]
    if address is None:
        return AriaError(f"--workers: Ray does not start here ({said}): run again, or leave it out")
    return AriaError(
        f"--ray: no cluster at {address} ({said}): start one by `ray start --head` and give its "
        "host:port, or leave --ray out"
    )


def _run(
    ray: Any, labeller: Labeller, blocks: tuple[Block, ...], workers: int
) -> Iterator[pa.Table]:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    shared = ray.put(labeller)
    rows = [{"group": b.group, "start": b.start, "stop": b.stop} for b in blocks]
    done = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        _Worker,
        fn_constructor_args=(shared,),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(workers, len(rows))),
        num_cpus=1,
    )
    yield from done.iter_batches(batch_size=None, batch_format="pyarrow")


class _Worker:
    """A labeller in a process of its own."""

    def __init__(self, shared: Any) -> None:
        import ray

        self.labeller: Labeller = ray.get(shared) if isinstance(shared, ray.ObjectRef) else shared

    def __call__(self, batch: dict[str, Any]) -> pa.Table:
        (block,) = (Block(*map(int, row)) for row in zip(*batch.values(), strict=True))
        try:
            return self.labeller(block)
        except Exception as error:
            line = one_line(error)
            if line is None:
                raise
            raise AriaError(line) from None  # what Arrow raises is not told from a bug elsewhere


def _mistake(error: Any) -> AriaError | None:
    """The mistake that a worker reported; None for a bug."""
    link: Any = error
    while link is not None and not isinstance(link, AriaError):
        link = getattr(link, "cause", None) or link.__cause__
    return None if link is None else AriaError(str(link))
