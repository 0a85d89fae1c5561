"""Curves and areas against those of the library, where there are no ties and where there are."""

import numpy as np
import pytest

import segtrust as st
from segtrust.paper.synthetic.images import Images, Models, draw_images
from segtrust.paper.synthetic.ranking import area_of, confidences_of, true_risks, whole_area_of


def test_without_ties_the_area_is_the_library_s():
    rng = np.random.default_rng(0)
    confidence, loss = rng.random(500), rng.random(500)
    curve = st.risk_coverage_curve(confidence, loss)
    risks = true_risks(confidence, loss)
    np.testing.assert_allclose(risks, curve.risks[1:], rtol=1e-13)
    assert area_of(risks) == pytest.approx(curve.area("trapezoid-from-first"), rel=1e-13)
    assert whole_area_of(risks) == pytest.approx(curve.aurc, rel=1e-13)


def test_ties_keep_the_order_of_the_images():
    assert true_risks(np.zeros(3), np.array([0.0, 1.0, 0.5])).tolist() == [0.0, 0.5, 0.5]


def test_ideal_model_has_one_idc_of_marginals():
    images = draw_images(range(50), n=10, mu_z=-3.698, rho_z=5.0)
    found = confidences_of(images, Models(images.p))
    assert found["idc(p_hat)"] is found["idc(p)"]
    copied = confidences_of(images, Models(images.p.copy()))
    np.testing.assert_array_equal(copied["idc(p_hat)"], found["idc(p)"])


def test_confidences_are_those_of_the_public_functions():
    images = draw_images(range(20), n=10, mu_z=-1.0, rho_z=3.0)
    models = Models(images.p)
    found = confidences_of(images, models)
    for i, (q, p, mask) in enumerate(zip(images.q, images.p, models.masks, strict=True)):
        assert found["idc(x)"][i] == pytest.approx(st.full_posterior_dice(q, mask), rel=1e-12)
        assert found["sdc"][i] == pytest.approx(st.soft_dice_confidence(p), rel=1e-14)
        assert found["amsp"][i] == pytest.approx(st.average_max_probability(p), rel=1e-14)


def test_images_that_may_be_empty_keep_their_probabilities():
    images = Images(np.array([[0.2, 0.6]]), may_be_empty=True)
    assert images.p is images.q
    found = confidences_of(images, Models(images.p))
    assert found["idc(x)"].tolist() == found["idc(p)"].tolist()


def test_marginals_do_not_exceed_1_and_tiny_chances_do_not_cancel():
    images = Images(np.array([[1e-20, 1e-30], [1.0, 0.5], [1e-9, 0.0]]))
    np.testing.assert_allclose(images.chance, [1e-20, 1.0, 1e-9], rtol=1e-9)
    np.testing.assert_allclose(images.p, [[1.0, 1e-10], [1.0, 0.5], [1.0, 0.0]], rtol=1e-9)
    assert images.p.max() <= 1.0
