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
from aria_dvc.shown import brief

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
    said = brief(error)
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
    for answers in done.iter_batches(batch_size=None, batch_format="pyarrow"):
        for answer in answers.to_pylist():
            if answer["mistake"]:
                raise AriaError(answer["mistake"])
            yield pa.ipc.open_stream(answer["labels"]).read_all()


class _Worker:
    """A labeller in a process of its own.

    It answers with what was wrong, since Ray gives the driver an exception without its cause.
    """

    def __init__(self, shared: Any) -> None:
        import ray

        self.labeller: Labeller = ray.get(shared) if isinstance(shared, ray.ObjectRef) else shared

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        (block,) = (Block(*map(int, row)) for row in zip(*batch.values(), strict=True))
        try:
            return {"labels": [_as_bytes(self.labeller(block))], "mistake": [""]}
        except Exception as error:
            line = one_line(error)
            if line is None:
                raise
            return {"labels": [b""], "mistake": [line]}


def _as_bytes(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return bytes(out.getvalue())
