from tests.ops.array_backends import ops  # noqa: F401 - a fixture
