"""Maps of JAX: the numbers and the errors of the NumPy path."""

import numpy as np
import pytest

import segtrust
from segtrust.errors import SegtrustWarning
from segtrust.kernels import on_host
from tests.kernels.devices import BAD, ESTIMATORS, TOLERANCE, complaint
from tests.references import logit_normal

pytestmark = [pytest.mark.slow, pytest.mark.needs("jax")]


@pytest.fixture
def jax():
    """JAX with doubles."""
    import jax

    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", False)


def test_jax_gives_the_same_numbers(jax):
    p, mask = logit_normal((300, 301)), np.random.default_rng(3).random((300, 301)) < 0.3
    codes = (p * 255).astype(np.uint8)
    for stored, chosen, names in ((p.astype(np.float32), None, ESTIMATORS), (codes, mask, ["sdc", "mmmc"])):
        found = segtrust.score(jax.numpy.asarray(stored), chosen, names, threshold=0.3)
        for name, value in segtrust.score(stored, chosen, names, threshold=0.3).items():
            assert isinstance(found[name], jax.Array)
            np.testing.assert_allclose(float(found[name]), value, rtol=TOLERANCE, err_msg=name)
    assert isinstance(segtrust.dice(jax.numpy.asarray(mask), jax.numpy.asarray(mask)), jax.Array)


def test_jax_arrays_are_copied_to_the_host(jax):
    """Where the computation is on the host: a mask beside a NumPy map, the search for a mask, checks."""
    p = logit_normal((40, 50))
    on_device = jax.numpy.asarray(p)
    assert type(on_host(on_device)) is np.ndarray
    assert on_host(on_device.astype("bfloat16")).dtype == np.float32
    assert segtrust.score(p, on_device > 0.5, "sdc") == segtrust.score(p, p > 0.5, "sdc")
    assert type(segtrust.dice(on_device > 0.5, p > 0.4)) is float
    best, expected = segtrust.dice_optimal_mask(on_device), segtrust.dice_optimal_mask(p)
    assert (best.threshold, best.k) == (expected.threshold, expected.k)
    assert isinstance(best.mask, jax.Array)
    assert np.array_equal(best.mask, expected.mask)
    assert isinstance(segtrust.pairwise_dice([on_device, p]), jax.Array)
    softmax = np.stack([p, 1.0 - p])
    with pytest.warns(SegtrustWarning, match="classes of a softmax"):
        segtrust.score(jax.numpy.asarray(softmax), estimators="sdc")
    selected = segtrust.score_classes(jax.numpy.asarray(softmax), ["a", "b"], where=on_device < 0.9)
    assert isinstance(selected.case["sdc"], jax.Array)


def test_a_policy_decides_on_jax_arrays(jax):
    confidence = np.random.default_rng(0).random(400)
    cases = segtrust.CalibrationCases(confidence, (1.0 - confidence) / 4)
    certificate = segtrust.certify(cases, segtrust.Target(0.2))
    policy = segtrust.Policy.from_certificate(certificate, segtrust.Scoring("sdc"))
    some = jax.numpy.asarray(confidence[:5])
    assert list(policy.decide(some)) == list(policy.decide(confidence[:5]))
    p = logit_normal((40, 50))
    assert policy.decide_map(jax.numpy.asarray(p)).decision == policy.decide_map(p).decision


def test_jax_complains_the_same(jax):
    for name in ("NaN", "logits", "no pixel", "signed", "mask of another shape", "mask of labels"):
        p, mask = BAD[name]
        arrays = jax.numpy.asarray(p), None if mask is None else jax.numpy.asarray(mask)
        assert complaint(*arrays) == complaint(p, mask)


def test_jax_without_doubles_sums_in_floats():
    import jax

    p = logit_normal((40, 50)).astype(np.float32)
    estimators = ["sdc", "ane", "mmmc"]  # saturated maps below are for the others
    found = segtrust.score(jax.numpy.asarray(p), None, estimators)
    for name, value in segtrust.score(p, None, estimators).items():
        assert float(found[name]) == pytest.approx(value, rel=1e-5)


SATURATED = {
    "one certain pixel": [1.0],
    "certain and unsure": [1.0, 1.0, 0.3, 0.2],
    "all certain": [1.0, 0.0],
    "hardly unsure": [1 - 2**-24, 2**-140],
    "many certain": np.repeat([1.0, 0.4, 0.0], [6000, 300, 900]),
    "mask and background certain": np.repeat([1.0, 0.0], [90_000, 10_000]),
}


@pytest.mark.parametrize("name", SATURATED)
def test_saturated_maps_without_doubles(name):
    import jax

    p = np.array(SATURATED[name], np.float32)
    mask = np.arange(p.size) % 3 != 1
    for chosen in (None, mask):
        for of in (segtrust.ideal_dice_confidence, segtrust.expected_iou):
            found = float(of(jax.numpy.asarray(p), chosen))
            assert found == pytest.approx(of(p, chosen), rel=2e-5, abs=1e-30)
        for beta in (0.1, 3.0, 1e6):
            found = float(segtrust.expected_f_beta(jax.numpy.asarray(p), chosen, beta=beta))
            assert found == pytest.approx(segtrust.expected_f_beta(p, chosen, beta=beta), rel=1e-4)
