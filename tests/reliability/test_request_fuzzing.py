"""The desk under requests that its own description allows or forbids."""

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("schemathesis", "fastapi", "uvicorn", "httpx", "nibabel", "PIL"),
]


@pytest.mark.parametrize("desk", ["ask_pictured", "ask_counted"])
def test_no_request_is_answered_otherwise_than_described(tmp_path, desk, record_property):
    from tools.reliability import request_fuzzing

    found = getattr(request_fuzzing, desk)(tmp_path / "desk", examples=15, seed=1)
    record_property("requests", found.requests)
    assert found.operations == 15
    assert found.requests > 500
    assert not found.failures, found.told
