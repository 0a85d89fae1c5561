"""Arguments that all scoring functions share: labels, empty=, calls on arrays, lists of estimators."""

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import EstimatorList, get_estimators, named_estimators
from segtrust.errors import ParameterError, UnknownNameError
from tests.plugged import forget, installed, package

P = np.array([[0.9, 0.8, 0.3], [0.1, 0.0, 0.2]])
CALLS = {
    "score": st.score,
    "assess": lambda p, **more: st.assess(p, **more).scores,
    "score_batch": lambda p, **more: {
        name: values[0] for name, values in st.score_batch(p[None], **more).items()
    },
    "score_classes": lambda p, **more: st.score_classes(p[None], ["organ"], independent=True, **more).classes[
        "organ"
    ],
}


@pytest.fixture(params=CALLS)
def call(request):
    return CALLS[request.param]


class TestLabels:
    def test_one_name_or_estimator(self, call):
        assert call(P, estimators="sdc") == {"sdc": st.soft_dice_confidence(P)}
        assert call(P, estimators=st.PatchLevel(2)) == {"pla": st.patch_level_confidence(P, size=2)}

    def test_two_settings_side_by_side(self, call):
        sizes = {f"pla-{size}": st.PatchLevel(size) for size in (1, 2)}
        found = call(P, estimators={**sizes, "soft": "sdc"})
        assert found == {
            "pla-1": st.patch_level_confidence(P, size=1),
            "pla-2": st.patch_level_confidence(P, size=2),
            "soft": st.soft_dice_confidence(P),
        }

    def test_other_packages_get_a_list_by_name(self):
        assert get_estimators({"sdc": "sdc"}) == [st.SoftDice()]
        with pytest.raises(ParameterError, match=r"by the names of estimators here; the labels \['a'\]"):
            get_estimators({"a": "sdc"})

    @pytest.mark.parametrize("label", ["k", "lam", "upper", "class", "predicted", "foreground_ratio"])
    def test_columns_of_the_results_are_no_labels(self, call, label):
        with pytest.raises(ParameterError, match=f"the label '{label}' is the name of another column"):
            call(P, estimators={label: "sdc"})

    def test_an_unknown_name_in_a_mapping(self):
        with pytest.raises(UnknownNameError, match="Unknown estimator 'sdk'"):
            named_estimators({"a": "sdk"})


class TestEmpty:
    nothing = np.full((4, 4), 0.01)
    agree = 0.99**16

    def test_names_follow_it(self, call):
        # (an absent class of score_classes has no score, so the mask is empty but the class is probable)
        p = np.full((4, 4), 0.4)
        found = call(p, estimators=["sdc", "idc", "amsp"], empty="agree", threshold=0.5)
        if found is not None:
            assert found["sdc"] == found["idc"] == pytest.approx(0.6**16)
            assert found["amsp"] == pytest.approx(0.6)

    def test_the_default_is_the_paper(self):
        assert st.score(self.nothing, estimators=["sdc", "idc"]) == {"sdc": 0.0, "idc": 0.0}
        explicit = st.score(self.nothing, estimators=["sdc", "idc"], empty="paper")
        assert explicit == {"sdc": 0.0, "idc": 0.0}

    def test_all_calls_pass_it_on(self):
        mask = np.zeros((4, 4), bool)
        p = np.full((4, 4), 0.01)
        p[0, 0] = 0.7  # probable somewhere, so the class is not absent
        exact = 0.99**15 * 0.3
        assert st.score(p, mask, "sdc", empty="agree")["sdc"] == pytest.approx(exact)
        assert st.assess(p, mask, "sdc", empty="agree").scores["sdc"] == pytest.approx(exact)
        assert st.score_batch(p[None], mask[None], "sdc", empty="agree")["sdc"][0] == pytest.approx(exact)
        found = st.score_classes(p[None], ["a"], mask[None], "sdc", independent=True, empty="agree")
        assert found.classes["a"]["sdc"] == pytest.approx(exact)

    def test_an_object_keeps_its_own(self):
        assert st.score(self.nothing, estimators=st.SoftDice(empty="agree"))["sdc"] == pytest.approx(
            self.agree
        )

    def test_a_contradiction_raises(self, call):
        with pytest.raises(ParameterError, match=r"empty: 'agree' contradicts SoftDice\(empty='paper'\)"):
            call(P, estimators=[st.SoftDice()], empty="agree")
        assert call(P, estimators=[st.SoftDice("agree")], empty="agree")

    def test_an_unknown_one_raises(self, call):
        with pytest.raises(ParameterError, match="empty: expected one of 'paper', 'agree', got 'zero'"):
            call(P, empty="zero")


class TestList:
    def test_names_and_descriptions(self):
        listed = st.estimators()
        assert isinstance(listed, EstimatorList)
        assert list(listed)[:2] == ["sdc", "idc"]
        assert len(listed) == len(set(listed))
        assert listed["pairwise-dice"].endswith("(Needs the members of an ensemble.)")
        assert listed["tla"].endswith("(Fit it first.)")
        assert all("\n" not in text and "see `" not in text for text in listed.values())

    def test_it_displays_itself(self):
        lines = repr(st.estimators()).splitlines()
        assert len(lines) == len(st.estimators())
        assert lines[0].split()[0] == "sdc"
        assert "<td>pla</td><td>PLA</td>" in st.estimators()._repr_html_()

    def test_plug_ins_are_listed_and_broken_ones_say_why(self, tmp_path, monkeypatch):
        entries = {"estimators": {"good": "listed_pkg:Good", "bad": "listed_pkg:Missing"}}
        text = (
            "from segtrust.confidence import SoftDice\n"
            "class Good(SoftDice):\n    '''A <good> one.'''\n    name = 'good'\n    label = 'Good'\n"
        )
        with installed(monkeypatch, tmp_path):
            package(tmp_path, "seg-listed", entries, {"listed_pkg": text})
            listed = st.estimators()
            assert listed["good"] == "A <good> one."
            assert "seg-listed" in listed["bad"]
            assert "&lt;good&gt;" in listed._repr_html_()
        forget()


class TestCalls:
    def test_on_arrays(self):
        assert st.SoftDice()(P) == st.soft_dice_confidence(P)
        mask = P > 0.85
        assert st.IdealDice()(P, mask) == st.ideal_dice_confidence(P, mask)
        assert st.SoftDice()(P, threshold=0.2) == st.soft_dice_confidence(P, threshold=0.2)
        where = P > 0.05
        assert st.PatchLevel(2)(P, where=where) == st.patch_level_confidence(P, size=2, where=where)

    def test_on_predictions_and_cases(self):
        prediction = st.Prediction(P, threshold=0.2)
        assert st.SoftDice()(prediction) == st.SoftDice()(st.Case(prediction, P > 0.5))
        with pytest.raises(ParameterError, match="expected none with a Prediction"):
            st.SoftDice()(prediction, where=P > 0)

    def test_an_estimator_that_learned(self):
        assert st.ThresholdLevel(tau=0.3)(P) == st.threshold_level_confidence(P, tau=0.3)


def test_warm_up():
    assert st.warm_up(["sdc", "pairwise-dice"]) >= 0.0
    assert st.warm_up() >= 0.0


def test_an_assessment_displays_itself():
    assessment = st.assess(P, estimators=["sdc"])
    assert repr(assessment).startswith("Assessment(sdc=0.7907, k=2")
    assert "<th>sdc</th>" in assessment._repr_html_()


@pytest.mark.needs("pandas")
def test_an_assessment_is_a_row():
    frame = st.assess(P, estimators=["sdc"]).to_dataframe()
    assert list(frame.columns[:3]) == ["sdc", "k", "mu"]
    assert len(frame) == 1


class TestWhere:
    """The rest may hold anything: the result is that of the selected pixels alone."""

    p = np.array([0.9, 0.45, 0.1, np.nan, 0.7])
    where = np.array([True, True, True, False, False])

    def test_dice_optimal_masks(self):
        found, alone = st.dice_optimal_mask(self.p, where=self.where), st.dice_optimal_mask(self.p[:3])
        assert (found.confidence, found.threshold, found.k) == (alone.confidence, alone.threshold, alone.k)
        assert found.mask.tolist() == [*alone.mask.tolist(), False, False]
        with pytest.raises(st.errors.EmptyArrayError, match="where: expected at least one"):
            st.dice_optimal_mask(self.p, where=np.zeros(5, bool))

    def test_the_full_posterior(self):
        mask = np.array([1, 1, 0, 0, 1])
        expected = st.full_posterior_dice(self.p[:3], mask[:3])
        assert st.full_posterior_dice(self.p, mask, where=self.where) == pytest.approx(expected, rel=1e-14)

    def test_members(self):
        maps = [self.p, np.array([0.1, 0.6, 0.9, np.nan, 0.0]), np.array([0.2, 0.8, 0.9, 5.0, -1.0])]
        expected = st.pairwise_dice([p[:3] for p in maps])
        assert st.pairwise_dice(maps, where=self.where) == expected


@pytest.mark.needs("torch")
def test_lists_of_tensors_are_stacked():
    import torch

    p = torch.rand(2, 8, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    with pytest.raises(ParameterError, match="p: expected tensors of one shape"):
        st.score_batch([p[0], p[1, :4]])
    found = st.score_batch([p[0], p[1]], estimators="sdc")["sdc"]
    assert found.requires_grad
    assert torch.equal(found, st.score_batch(p, estimators="sdc")["sdc"])
    classes = st.score_classes([1.0 - p[0], p[0]], ["background", "organ"], estimators="sdc").classes
    assert isinstance(classes["organ"]["sdc"], torch.Tensor)
