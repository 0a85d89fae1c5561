"""The transforms and the handler in a real evaluator of MONAI: its table is that of `segtrust score`."""

import json
import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import segtrust as st
from segtrust.cli import app
from segtrust.errors import (
    MaskError,
    MaskShapeError,
    NotFittedError,
    ParameterError,
    ProbabilityRangeError,
    UnknownNameError,
)
from segtrust.io import Table, read_table, write_table
from segtrust.review.run import Run
from tests.integrations.monai_runs import NAMES, evaluator, write_volumes

pytestmark = pytest.mark.needs("torch", "monai", "ignite", "nibabel")
if all(map(find_spec, ("torch", "monai", "ignite"))):  # elsewhere the mark skips every test
    import torch

    from segtrust.integrations.monai import (
        ConfidenceSaver,
        SegmentationConfidence,
        SegmentationConfidenced,
        SegmentationConfidenceDict,
    )

    torch.set_num_threads(1)

ROOT = Path(__file__).parents[2]
ALONE = (
    "file",
    "image_file",
    "mask_file",
    "truth_file",
    "checksum",
    "mask_checksum",
    "seconds",
    "spacing_mm",
)
"""Columns that tell of files."""


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("volumes")
    return write_volumes(folder)


@pytest.fixture(scope="module")
def run(volumes, tmp_path_factory):
    """An evaluator that has run, its table, and the probabilities that it had, as files."""
    from monai.transforms import Lambdad

    folder = tmp_path_factory.mktemp("run")
    maps = folder / "maps"
    maps.mkdir()

    def keep(p):
        name = Path(p.meta["filename_or_obj"]).name.removesuffix(".nii.gz")
        values = p.as_tensor().numpy()
        np.savez(maps / f"{name}.npz", probabilities=values)
        return p

    engine = evaluator(
        volumes, [ConfidenceSaver(folder / "scores.csv")], before=[Lambdad("pred", keep, track_meta=False)]
    )
    engine.run()
    labels = {"background": 0, "organ": 1, "lesion": 2}
    (maps / "dataset.json").write_text(json.dumps({"labels": labels}))
    return engine, folder / "scores.csv", maps


def rows_of(path):
    """The rows of a table by case and structure, without what tells of files."""
    return {
        (row["case"], row["structure"]): {name: row[name] for name in row if name not in ALONE}
        for row in read_table(path).rows
    }


class TestEvaluator:
    def test_the_table_is_that_of_the_command_line(self, run, volumes, tmp_path):
        _, table, maps = run
        truths, masks = tmp_path / "truths", tmp_path / "masks"
        truths.mkdir()
        masks.mkdir()
        for item in volumes:
            name = Path(item["label"]).name.removesuffix(".nii.gz")
            np.save(truths / f"{name}.npy", load(item["label"]))
            np.save(masks / f"{name}.npy", np.load(maps / f"{name}.npz")["probabilities"].argmax(0))
        arguments = ["score", maps, "-o", tmp_path / "scores.csv", "--region", "each", "--truth", truths]
        arguments += ["--mask-dir", masks, "--estimators", "sdc,idc,amsp"]
        found = CliRunner().invoke(app, list(map(str, arguments)))
        assert found.exit_code == 0, found.output
        expected, got = rows_of(tmp_path / "scores.csv"), rows_of(table)
        assert list(got) == [(f"case_{i}", name) for i in range(5) for name in NAMES[1:]]
        assert got == expected

    def test_outputs_and_state_hold_the_confidences(self, run):
        engine, table, _ = run
        rows = read_table(table).rows
        last = engine.state.output[-1]
        assert last["pred_sdc"].dtype == torch.float64
        assert last["pred_sdc"].tolist() == [row["sdc"] for row in rows[-2:]]
        assert last["pred_idc"].shape == last["pred_amsp"].shape == (2,)
        found = {(row["case"], row["structure"]): row["idc"] for row in engine.state.confidences.rows}
        assert found == {(row["case"], row["structure"]): row["idc"] for row in rows}

    def test_metrics(self, run):
        engine, table, _ = run
        rows, metrics = read_table(table).rows, engine.state.metrics
        organ, lesion = ([row for row in rows if row["structure"] == name] for name in NAMES[1:])
        assert metrics["sdc_mean_organ"] == pytest.approx(np.mean([row["sdc"] for row in organ]))
        assert metrics["dice_mean"] == pytest.approx(np.mean([row["dice"] for row in rows]))
        assert metrics["dice_mean"] == pytest.approx(metrics["dice"], abs=1e-6)  # MONAI's own
        areas = [
            st.risk_coverage_curve([row["idc"] for row in each], [1 - row["dice"] for row in each]).aurc
            for each in (organ, lesion)
        ]
        assert [metrics["idc_aurc_organ"], metrics["idc_aurc_lesion"]] == areas
        assert metrics["idc_aurc"] == pytest.approx(np.mean(areas))

    def test_a_second_run_begins_anew(self, volumes):
        engine = evaluator(volumes[:2], [ConfidenceSaver(None)])
        engine.run()
        first = engine.state.confidences
        engine.run()
        assert engine.state.confidences == first
        assert len(first.rows) == 4

    def test_a_reversed_ranking_has_an_area_and_no_warning(self):
        """The handler computes the loss itself, so a model that is confident and wrong is a result."""
        from monai.data import DataLoader, Dataset
        from monai.engines import SupervisedEvaluator

        truth = torch.arange(40).reshape(1, 5, 8) >= torch.arange(30)[:, None, None, None]
        items = [
            {"id": str(i), "image": torch.full((1, 5, 8), 0.6 + i / 100), "label": truth[i]}
            for i in range(30)
        ]
        score = SegmentationConfidenced("pred", label_keys="label", from_logits=False, task="binary")
        engine = SupervisedEvaluator(
            device="cpu",
            val_data_loader=DataLoader(Dataset(items), batch_size=10),
            network=torch.nn.Identity(),
            postprocessing=score,
            val_handlers=[ConfidenceSaver(None, name_of=lambda output: output["id"])],
        )
        engine.run()
        assert engine.state.metrics["sdc_aurc"] > 1 - engine.state.metrics["dice_mean"]

    def test_the_commands_take_the_table(self, run, tmp_path):
        saved = read_table(run[1])
        rows = [row | {"case": f"{row['case']}_{i}"} for row in saved.rows for i in range(40)]
        many = tmp_path / "many.csv"
        write_table(many, Table.of(rows, saved.about))
        steps = [
            ["calibrate", many, "-o", tmp_path / "policy.json", "--target-risk", "0.9", "--json"],
            ["evaluate", many, "-o", tmp_path / "evaluation"],
            ["report", tmp_path / "evaluation", "-o", tmp_path / "report.html"],
        ]
        for step in steps:
            found = CliRunner().invoke(app, list(map(str, step)))
            assert found.exit_code == 0, found.output
        assert Run(many).now().rows

    @pytest.mark.slow
    def test_on_several_processes_each_case_comes_once(self, run, volumes, tmp_path):
        command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROCESS)]
        given = [json.dumps(volumes), str(tmp_path)]
        runs = [
            subprocess.Popen([*command, str(rank), *given], stderr=subprocess.PIPE, env=environment())
            for rank in range(2)
        ]
        results = [(each.communicate(timeout=240)[1], each.returncode) for each in runs]
        assert [code for _, code in results] == [0, 0], "\n".join(error.decode() for error, _ in results)
        assert rows_of(tmp_path / "scores.csv") == rows_of(run[1])
        metrics = [json.loads((tmp_path / f"metrics-{rank}.json").read_text()) for rank in range(2)]
        expected = {name: value for name, value in run[0].state.metrics.items() if name != "dice"}
        assert metrics == [expected, expected]


PROCESS = """
    import json, os, sys, torch, torch.distributed as distributed
    rank, items, folder = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    from monai.data import DistributedSampler
    from segtrust.integrations.monai import ConfidenceSaver
    from tests.integrations.monai_runs import evaluator

    sampler = lambda data: DistributedSampler(data, shuffle=False)  # 5 cases: one is repeated
    engine = evaluator(items, [ConfidenceSaver(f"{folder}/scores.csv")], sampler=sampler)
    engine.run()
    assert len(engine.state.confidences.rows) == 10
    metrics = {name: value for name, value in engine.state.metrics.items() if name != "dice"}
    with open(f"{folder}/metrics-{rank}.json", "w") as file:
        json.dump(metrics, file)
    distributed.barrier()
    distributed.destroy_process_group()
"""


def environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


def load(path):
    import nibabel

    return np.asarray(nibabel.load(path).dataobj)


def softmax_maps(seed=0, shape=(3, 9, 8)):
    return torch.from_numpy(np.random.default_rng(seed).normal(0, 2, shape)).softmax(0)


class TestTransforms:
    def test_one_channel(self):
        p = torch.from_numpy(np.random.default_rng(0).random((1, 6, 7, 8)))
        found = SegmentationConfidence(from_logits=False, task="binary", estimators=["sdc", "pla"])(p)
        expected = st.score(p[0].numpy(), estimators=["sdc", "pla"])
        assert {name: values.tolist() for name, values in found.items()} == {
            name: [value] for name, value in expected.items()
        }

    @pytest.mark.parametrize("given", ["numpy", "torch", "meta", "bfloat16"])
    def test_arrays_of_all_kinds(self, given):
        from monai.data import MetaTensor

        p = softmax_maps().float()
        made = {"numpy": p.numpy(), "torch": p, "meta": MetaTensor(p), "bfloat16": p.bfloat16()}[given]
        transform = SegmentationConfidence(from_logits=False, task="multilabel", names=["a", "b", "c"])
        plain = (p.bfloat16().float() if given == "bfloat16" else p).numpy()
        assert transform(made)["sdc"].tolist() == [st.soft_dice_confidence(each) for each in plain]

    def test_logits_and_probabilities_give_the_same(self):
        logits = torch.randn(3, 6, 7, dtype=torch.float64)
        for task, p in (("multiclass", logits.softmax(0)), ("multilabel", logits.sigmoid())):
            settings = {"task": task, "names": ["background", "b", "c"]}
            found = SegmentationConfidence(from_logits=True, **settings)(logits)["sdc"]
            assert torch.equal(found, SegmentationConfidence(from_logits=False, **settings)(p)["sdc"])
            assert found.shape == (2,)

    def test_a_delivered_mask_wins(self):
        p = softmax_maps()
        labels = torch.randint(0, 3, (1, 9, 8))
        onehot = torch.nn.functional.one_hot(labels[0], 3).movedim(-1, 0)
        transform = SegmentationConfidence(from_logits=False, task="multiclass", names=NAMES)
        expected = [st.soft_dice_confidence(p[i].numpy(), (labels[0] == i).numpy()) for i in (1, 2)]
        assert transform(p, labels)["sdc"].tolist() == transform(p, onehot)["sdc"].tolist() == expected

    def test_several_keys_masks_and_labels(self):
        transform = SegmentationConfidenceDict(
            ["one", "two"],
            mask_keys=["mask_one", "mask_two"],
            label_keys="label",
            allow_missing_keys=True,
            from_logits=False,
            task="binary",
            empty="agree",
        )
        label = torch.tensor([[1, 0, 0]])
        item = {"one": torch.tensor([[0.9, 0.2, 0.0]]), "mask_one": torch.tensor([[0, 0, 0]]), "label": label}
        found = transform(item)
        (row,) = found["one_confidence"].rows
        assert (row["k"], row["mask"], row["dice"]) == (0, "delivered", 0.0)
        assert found["one_sdc"].tolist() == [pytest.approx(0.1 * 0.8)]  # the probability of an empty truth
        assert "two_sdc" not in found
        assert "dice" not in transform({**item, "label": None})["one_confidence"].rows[0]
        with pytest.raises(ParameterError, match="mask_keys: expected 'mask_two' in each item"):
            transform({"two": item["one"], "label": label})

    def test_a_fitted_estimator_is_given_itself(self):
        transform = SegmentationConfidence(
            from_logits=False, task="binary", estimators=["sdc", st.ThresholdLevel(tau=0.3)]
        )
        assert set(transform(torch.rand(1, 5, 5))) == {"sdc", "tla"}

    @pytest.mark.parametrize(
        ("error", "message", "settings"),
        [
            (ParameterError, "names: expected the name of every channel of a multiclass", {"names": None}),
            (ParameterError, "names: expected the name of every channel", {"names": "organ"}),
            (ParameterError, "names: expected different names", {"names": ["a", "a"]}),
            (ParameterError, "names: expected different names, and not only", {"names": ["background"]}),
            (ParameterError, "names: expected one name for a binary task", {"task": "binary"}),
            (ParameterError, "task: expected one of binary", {"task": "softmax"}),
            (NotFittedError, r"aef learns from cases.*FeatureAggregation\(\).fit", {"estimators": ["aef"]}),
            (UnknownNameError, "Unknown estimator 'sdk'", {"estimators": ["sdk"]}),
            (ParameterError, "estimators: expected names", {"estimators": 3}),
        ],
    )
    def test_settings_are_checked(self, error, message, settings):
        usual = {"from_logits": False, "task": "multiclass", "names": NAMES}
        with pytest.raises(error, match=message):
            SegmentationConfidence(**{**usual, **settings})

    def test_nothing_is_guessed(self):
        with pytest.raises(TypeError, match="'from_logits' and 'task'"):
            SegmentationConfidence()
        transform = SegmentationConfidence(from_logits=False, task="multiclass", names=NAMES)
        with pytest.raises(ProbabilityRangeError, match="look like logits"):
            transform(5 * torch.randn(3, 8, 8))
        with pytest.raises(
            ParameterError, match=r"expected one case with 3 channels first \(background, organ, lesion\)"
        ):
            transform(torch.rand(2, 3, 8, 8))

    @pytest.mark.parametrize(
        ("error", "message", "mask"),
        [
            (MaskShapeError, r"mask: expected shape \(3, 9, 8\), or labels of shape \(1, 9, 8\)", (9, 8)),
            (MaskError, "mask: expected whole numbers as labels, from 0 to 2", (1, 9, 8)),
            (MaskError, "mask: expected", (3, 9, 8)),
        ],
    )
    def test_masks_are_checked(self, error, message, mask):
        transform = SegmentationConfidence(from_logits=False, task="multiclass", names=NAMES)
        with pytest.raises(error, match=message):
            transform(softmax_maps(), torch.full(mask, 7))


def test_a_truth_that_is_not_there_is_told_once():
    transform = SegmentationConfidenced("pred", label_keys="lable", from_logits=False, task="binary")
    item = {"pred": torch.tensor(((0.9, 0.2),)), "label": torch.tensor(((1, 0),))}
    with pytest.warns(UserWarning, match=r"label_keys: expected 'lable', got an item with pred, label"):
        found = transform(item)
    assert "dice" not in found["pred_confidence"].rows[0]
    transform(item)


SLICES = (((0.9, 0.2),), ((0.6, 0.2),))


class TestHandler:
    def engine(self, items, **options):
        """An engine of Ignite that hands on what it is given."""
        from ignite.engine import Engine

        def step(engine, batch):
            engine.state.batch = [{key: item[key] for key in item if key != "out"} for item in batch]
            return [item["out"] for item in batch]

        engine = Engine(step)
        ConfidenceSaver(None, **options).attach(engine)
        engine.run([items])
        return engine

    def out(self, p=((0.9, 0.2),)):
        return SegmentationConfidenced("pred", from_logits=False, task="binary")({"pred": torch.tensor(p)})

    def test_cases_by_other_names(self):
        items = [{"id": name, "out": self.out()} for name in ("b", "a", "b")]
        found = self.engine(items, name_of=lambda item: item["id"]).state
        assert [(row["case"], row["image_file"]) for row in found.confidences.rows] == [("a", ""), ("b", "")]
        assert list(found.metrics) == ["sdc_mean"]  # without labels, that is all

    def test_what_differs_under_one_name_is_told_and_not_lost(self):
        files = [{"image_meta_dict": {"filename_or_obj": "ct.nii.gz"}, "out": self.out(p)} for p in SLICES]
        with pytest.raises(ParameterError, match=r"ct.nii.gz: expected one prediction .* name_of"):
            self.engine(files)

    def test_what_another_processor_rounds_otherwise_is_the_same_case(self):
        items = [{"id": "a", "out": self.out(((0.9, value),))} for value in (0.2, 0.2 + 1e-8)]
        assert len(self.engine(items, name_of=lambda item: item["id"]).state.confidences.rows) == 1

    def test_on_another_processor_a_pixel_may_change_sides_but_slices_are_others(self):
        from segtrust.integrations.monai_handler import _are_alike, _are_same

        near, other = ([0.9] * 40 + [0.5 + shift] + [0.1] * 200 for shift in (0.0, -1e-6))
        slices = [0.9] * 20 + [0.1] * 221
        scores = [self.out((each,))["pred_confidence"] for each in (near, other, slices)]
        assert _are_alike(scores[0], scores[1])
        assert not _are_same(scores[0], scores[1])
        assert not _are_alike(scores[0], scores[2])

    def test_cases_of_one_name_are_told_apart_by_their_folders(self):
        files = ["data/two/ct.nii.gz", "data/one/ct.nii.gz"]
        items = [{"image_meta_dict": {"filename_or_obj": each}, "out": self.out()} for each in files]
        rows = self.engine(items).state.confidences.rows
        assert [row["case"] for row in rows] == ["one/ct", "two/ct"]
        assert [row["image_file"] for row in rows] == sorted(files)

    def test_a_run_without_cases(self):
        found = self.engine([]).state
        assert found.confidences.rows == ()
        assert found.metrics == {}

    def test_what_is_missing_is_named(self):
        with pytest.raises(ParameterError, match=r"image_key: expected meta data of 'image'.*name_of"):
            self.engine([{"out": self.out()}])
        with pytest.raises(ParameterError, match=r"pred_confidence .* Put SegmentationConfidenced\('pred'"):
            self.engine([{"id": 1, "out": {}}], name_of=lambda item: item["id"])

    def test_batches_must_be_taken_apart(self):
        from ignite.engine import Engine

        engine = Engine(lambda engine, batch: {"pred": 1})
        ConfidenceSaver(None).attach(engine)
        with pytest.raises(ParameterError, match="Let the evaluator decollate"):
            engine.run([{"pred": 1}])

    def test_a_table_that_cannot_be_written_is_refused_at_once(self, tmp_path):
        with pytest.raises(ParameterError, match="expected a table ending in"):
            ConfidenceSaver(tmp_path / "scores.txt")


@pytest.mark.slow
@pytest.mark.parametrize("module", ["monai", "ignite"])
def test_a_missing_package_names_the_extra(module):
    code = (
        f"import sys; sys.modules[{module!r}] = None; from segtrust.integrations.monai import ConfidenceSaver"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert "pip install 'segtrust[monai]'" in done.stderr
