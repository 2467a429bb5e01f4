"""Fixtures that start something once for all tests that need it."""

import pytest


@pytest.fixture(scope="session")
def ray_session():
    """A quiet local Ray with three CPUs, so that up to three actors fit on any machine."""
    import ray

    from pipeline.actors import start

    start("local", 3)
    yield
    ray.shutdown()
