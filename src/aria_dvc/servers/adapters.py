"""LoRA adapters that a vLLM server loads while it runs."""

from __future__ import annotations

from pathlib import Path

from aria_dvc.errors import AriaError
from aria_dvc.servers.client import Misfit, NoAnswer, Refusal, Server
from aria_dvc.settings.machine import Endpoint


def serve_adapter(name: str, endpoint: Endpoint, model: str, folder: Path) -> Endpoint:
    """Have the server `endpoints.<name>` load the adapter as `model`; the endpoint that names it.

    The server must run with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and --enable-lora and see this
    machine's files. Where it has the adapter already, it is left so.

    Raises:
        AriaError: the server does not load the adapter, or its key is missing.
    """
    body = {"lora_name": model, "lora_path": str(folder.resolve())}
    try:
        Server.of(name, endpoint).ask("/load_lora_adapter", body, _loaded)
    except (NoAnswer, Refusal) as error:
        if not (isinstance(error, Refusal) and "already been loaded" in error.said):
            raise AriaError(
                f"endpoint {name} did not load the adapter ({error}): "
                "start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"
            ) from None
    return endpoint.model_copy(update={"model": model})


def _loaded(content: bytes) -> None:
    """Misfit for an answer that is not vLLM's, as of a web page that answers everything."""
    if not content.lstrip().startswith(b"Success"):
        raise Misfit("an answer that is not vLLM's `Success: ...`")
