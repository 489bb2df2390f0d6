"""What goes for all tests."""

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Compute on the CPU, on machines with GPUs too.

    Many tests ask for the same bits twice, which GPUs do not promise, hand a model tensors of the
    CPU, or start two processes where there may be one GPU. `make smoke` and `make test-vllm` use
    what there is.
    """
    if config.option.markexpr not in {"smoke", "vllm"}:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first, so that with `pytest -n` nobody waits for it at the end."""
    items.sort(key=lambda item: item.path.name != "test_pipeline_dag.py")
