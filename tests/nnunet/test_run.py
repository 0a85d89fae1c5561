"""nnU-Net itself, run on tiny data."""

import sys
from functools import cache
from pathlib import Path

import pytest

from tests.nnunet.commanded import CommandedContract
from tests.nnunet.contract import NnunetContract, read_case, read_image
from tests.nnunet.data import TEST_CASES, VARIANTS
from tests.nnunet.run import run_nnunet
from tests.nnunet.scored import ScoredContract

pytestmark = [pytest.mark.slow, pytest.mark.needs("nnunet", "SimpleITK")]


@pytest.fixture(scope="module")
def run(request, tool, tmp_path_factory):
    """A run with the given labels, made when it is first asked for."""
    capture = request.config.pluginmanager.get_plugin("capturemanager")

    @cache
    def of(labels):
        made = run_nnunet(tmp_path_factory.mktemp(labels), Path(tool("nnunet")), labels)
        times = ", ".join(f"{command} {seconds:.0f} s" for command, seconds in made.seconds.items())
        with capture.global_and_fixture_disabled():
            sys.stderr.write(f"\nnnU-Net, {labels}: {times}\n")
        return made

    return of


class TestRun(NnunetContract, ScoredContract, CommandedContract):
    @pytest.mark.parametrize("labels", VARIANTS)
    def test_map_has_the_shape_of_what_was_predicted(self, run, labels):
        made = run(labels)
        for case in TEST_CASES:
            image, geometry = read_image(made.images / f"{case}_0000.nii.gz")
            written = read_case(made.predictions, made.labels, case)
            assert written.probabilities.shape[1:] == image.shape
            assert written.geometry == geometry
