"""Desks that several tests share."""

import pytest

from tests.review import desks


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """Pictures with hostile names, and volumes."""
    return desks.make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def pictured(run_folder):
    """A desk on pictures and volumes, and a client of it."""
    with desks.desk_on(run_folder) as found:
        yield found


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A desk on 1,500 rows with a policy, a client of it, and the table."""
    folder = tmp_path_factory.mktemp("counted")
    table = desks.write_scores(folder / "scores.csv", 1500)
    policy = desks.write_policy(folder / "policy.json", table)
    with desks.desk_on(folder, policy=policy, predictor=desks.PREDICTOR) as (desk, client):
        yield desk, client, table
