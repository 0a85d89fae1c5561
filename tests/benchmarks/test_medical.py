"""Where the time of the medical evaluation goes."""

import pytest

from benchmarks.medical import medical_sections
from tests.paper.medical import folders

pytestmark = pytest.mark.needs("pyarrow", "sklearn", "matplotlib")


@pytest.mark.slow
def test_each_step_and_the_whole_are_timed(tmp_path):
    folders.write_run(tmp_path, "nuclei", n=5)
    ((title, lines),) = medical_sections(tmp_path, tasks=["nuclei"], repeats=2)
    assert "Nuclei (5 cases), 2 splits" in title
    found = {line.what: line.value for line in lines}
    assert set(found) == {
        *(f"nuclei, {step}" for step in ("scoring", "intervals and tests", "tuning")),
        "tables and figures",
        "all of it",
    }
    assert found["all of it"] >= found["nuclei, tuning"] > 0.0
