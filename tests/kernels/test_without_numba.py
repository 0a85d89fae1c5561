"""NumPy maps where Numba is missing: slower, and the same numbers."""

import json
import subprocess
import sys
import textwrap

import numpy as np

import segtrust
from tests.kernels.devices import ESTIMATORS, MAPS, TOLERANCE
from tests.references import logit_normal

WITHOUT_NUMBA = """
    import json, sys, warnings
    warnings.simplefilter("error")
    sys.modules["numba"] = None
    import numpy as np
    import segtrust
    from segtrust.kernels.opening import numba_is_there
    assert not numba_is_there()
    names = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", "pla", segtrust.ThresholdLevel(tau=0.3)]
    results = []
    with np.load(sys.argv[1]) as maps:
        for name in maps.files:
            scores = segtrust.score(maps[name], None, names, threshold=0.3)
            scores["given"] = segtrust.ideal_dice_confidence(maps[name], maps[name] > 0)
            assert {type(value) for value in scores.values()} == {float}
            results.append(scores)
        cases = [segtrust.Prediction(maps[name]) for name in maps.files]
        levels = [segtrust.ThresholdLevel().fit(cases).tau, segtrust.entropy_quantile(cases, 0.3)]
    few = [segtrust.Prediction(np.array([0.1, 0.2, 0.3, 0.4]))]
    levels += [segtrust.entropy_quantile(few, fraction) for fraction in (0.5, 0.7, 1.0)]
    p, mask = np.array([0.9, 0.3]), np.array([1, 0])
    for value in (
        segtrust.soft_dice_confidence(p),
        segtrust.average_class_probability(p),
        segtrust.threshold_level_confidence(p, tau=0.1),
        segtrust.expected_iou(p),
        segtrust.expected_tversky(np.array([1.0, 0.9]), [0, 1], alpha=0.5, beta=30.0),  # of a certain miss
        segtrust.get_estimator("ane").score(segtrust.Prediction(p)),
        segtrust.assess(p).scores["amsp"],
        segtrust.score_classes(np.array([p, 1 - p]), ["a", "b"]).case["sdc"],
    ):
        assert type(value) is float
    try:
        segtrust.soft_dice_confidence(np.array([-3.0, 2.0]))
    except segtrust.errors.ProbabilityRangeError as error:
        message = str(error)
    json.dump([results, levels, message, segtrust.dice(np.array([1, 1]), np.array([1, 0]))], sys.stdout)
"""


def test_numpy_gives_the_same_numbers_without_numba(tmp_path):
    p = logit_normal((300, 301))
    codes = {"uint8": (p * 255).astype(np.uint8), "uint16": (p * 65535).astype(">u2"), "bool": p > 0.4}
    floats = {kind: p.astype(kind) for kind in ("float16", "float32", "float64", "longdouble")}
    maps = MAPS | codes | floats
    np.savez(tmp_path / "maps.npz", **maps)
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_NUMBA), str(tmp_path / "maps.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results, levels, message, dice = json.loads(done.stdout)
    for (name, stored), found in zip(maps.items(), results, strict=True):
        expected = segtrust.score(stored, None, ESTIMATORS, threshold=0.3)
        expected["given"] = segtrust.ideal_dice_confidence(stored, stored > 0)
        for estimator, value in expected.items():
            np.testing.assert_allclose(found[estimator], value, rtol=TOLERANCE, err_msg=f"{name} {estimator}")
    cases = [segtrust.Prediction(stored) for stored in maps.values()]
    few = [segtrust.Prediction(np.array([0.1, 0.2, 0.3, 0.4]))]
    assert levels[:2] == [segtrust.ThresholdLevel().fit(cases).tau, segtrust.entropy_quantile(cases, 0.3)]
    assert levels[2:] == [segtrust.entropy_quantile(few, fraction) for fraction in (0.5, 0.7, 1.0)]
    assert "These look like logits" in message
    assert dice == 2 / 3
