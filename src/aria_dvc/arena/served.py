"""A trained policy on servers: each loads its adapter, and games ask for it by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aria_dvc.models.fingerprint import fingerprint
from aria_dvc.player_specs import find_endpoint
from aria_dvc.servers.adapters import serve_adapter

if TYPE_CHECKING:
    from aria_dvc.params import Params


def with_adapter(params: Params, servers: Sequence[str], adapter: Path) -> Params:
    """Have every vLLM server load `adapter` under a name of its own; the params that use it.

    The name follows from the weights, so what a server has loaded before is the same.

    Args:
        servers: names of endpoints; without any, params stay as they are.

    Raises:
        AriaError: a server does not load the adapter.
    """
    if not servers:
        return params
    model, endpoints = f"policy-{fingerprint(adapter)[:16]}", dict(params.endpoints)
    for name in servers:
        endpoint = find_endpoint(name, endpoints)
        endpoints[name] = serve_adapter(name, endpoint, model, adapter)
    return params.model_copy(update={"endpoints": endpoints})
