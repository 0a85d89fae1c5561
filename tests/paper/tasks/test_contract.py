"""Tasks keep the contract, and the contract notices one that does not."""

from dataclasses import replace

import pytest

from segtrust.paper.tasks import get_task
from segtrust.testing import TaskContract
from tests.paper.tasks import miniatures

pytestmark = pytest.mark.needs("PIL")


class TestBreastCancer(TaskContract):
    task = get_task("breast-cancer")

    def write(self, folder):
        miniatures.busi(folder)


class Forgetful(TestBreastCancer):
    """Leaves cases without a mask out, and nobody hears of them."""

    task = replace(
        get_task("breast-cancer"),
        find=lambda data: (each for each in get_task("breast-cancer").find(data) if each.masks),
    )


def test_the_contract_notices_cases_that_vanish():
    with pytest.raises(AssertionError, match="gone without a word"):
        Forgetful().test_a_case_without_its_mask_is_told()
