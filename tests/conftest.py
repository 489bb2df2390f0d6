"""What goes for all tests."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first, so that with `pytest -n` nobody waits for it at the end."""
    items.sort(key=lambda item: item.path.name != "test_pipeline_dag.py")
