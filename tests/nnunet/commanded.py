"""``segtrust nnunet`` and the predictor hook on a run of nnU-Net, in nnU-Net's own environment."""

import json
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from segtrust.io import read_table
from tests.nnunet.contract import read_image
from tests.nnunet.data import TEST_CASES, VALIDATION_CASES, VARIANTS
from tests.nnunet.layout import ENDINGS, copy, make_fainter
from tests.nnunet.run import CONFIGURATION, MODEL, TRAINER, NnunetRun, Runner

SOURCE = Path(__file__).parents[2] / "src"
COPIES = 30
MODEL_OPTIONS = ("-c", CONFIGURATION, "-tr", TRAINER)


@dataclass(frozen=True)
class There:
    """A run, and the interpreter of nnU-Net, which has segtrust beside it."""

    made: NnunetRun
    labels: str
    python: Path

    @property
    def root(self) -> Path:
        return self.made.predictions.parent

    @property
    def number(self) -> int:
        return VARIANTS[self.labels].number

    @property
    def model(self) -> Path:
        return self.root / "results" / VARIANTS[self.labels].name / MODEL

    def python_run(self, *arguments: object) -> subprocess.CompletedProcess:
        environment = Runner(self.python, self.root).environment() | {
            "PYTHONPATH": str(SOURCE),
            "OMP_NUM_THREADS": "1",
        }
        command = [self.python, *map(str, arguments)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=600
        )

    def segtrust(self, *arguments: object) -> subprocess.CompletedProcess:
        return self.python_run("-m", "segtrust", *arguments)

    def predict(self, images: Path, out: Path, *options: object) -> subprocess.CompletedProcess:
        command = ("nnunet", "predict", self.number, "-i", images, "-o", out, "-device", "cpu")
        return self.segtrust(*command, *options)


class CommandedContract:
    """Subclasses give a fixture ``run``: a function that takes the name of a variant."""

    @pytest.fixture(params=VARIANTS)
    def there(self, run, tool, request):
        return There(run(request.param), request.param, Path(tool("nnunet")).absolute())

    @pytest.fixture
    def plain(self, run, tool):
        return There(run("plain"), "plain", Path(tool("nnunet")).absolute())

    @pytest.fixture
    def wide(self, plain, tmp_path):
        """A copy of the run whose fold has fainter copies of its cases: a threshold can be certified."""
        root = shutil.copytree(plain.root, tmp_path / "run")
        moved = {
            name: root / path.relative_to(plain.root)
            for name, path in vars(plain.made).items()
            if isinstance(path, Path)
        }
        made = replace(plain.made, **moved)
        for number in range(COPIES):
            for case in VALIDATION_CASES:
                name = f"{case}_{number:02}"
                copy(made.validation / case, made.validation / name, ENDINGS)
                make_fainter(made.validation / f"{name}.npz", 1.0 - (number + 1) / 1000.0)
                copy(made.validation_labels / case, made.validation_labels / name, (".nii.gz",))
        return replace(plain, made=made)

    def test_the_run_is_shown(self, there):
        found = json.loads(there.segtrust("nnunet", "show", there.number, "--json").stdout)
        (model,) = found["models"]
        assert model["model"] == MODEL
        assert model["folds"]["0"] == {"validated": 2, "maps": 2, "makes_maps": None}
        assert found["is_regions"] == (there.labels == "regions")
        assert found["truth"] == str(there.made.validation_labels)

    def test_maps_in_memory_give_the_numbers_of_saved_ones(self, there, tmp_path):
        script = Path(__file__).with_name("hook.py")
        paths = (there.model, there.made.images, there.made.labels, tmp_path)
        done = there.python_run(script, *paths)
        assert done.returncode == 0, done.stdout + done.stderr
        saved, hooked = (read_table(tmp_path / f"{name}.csv") for name in ("saved", "hooked"))
        others = ("file", "mask_file", "image_file", "checksum", "mask_checksum", "seconds")
        columns = [name for name in saved.columns if name not in others]
        assert len(hooked.rows) == len(TEST_CASES) * VARIANTS[there.labels].shells
        for name in columns:
            assert hooked.column(name) == saved.column(name), name
        assert not list((tmp_path / "hooked").glob("*.npz"))
        for case in TEST_CASES:
            ours, theirs = (read_image(tmp_path / name / f"{case}.nii.gz") for name in ("hooked", "saved"))
            np.testing.assert_array_equal(ours[0], theirs[0])
            assert ours[1] == theirs[1]

    def test_a_command_predicts_decides_and_goes_on(self, wide, tmp_path):
        policy, out = tmp_path / "policy.json", tmp_path / "out"
        command = ("nnunet", "calibrate", wide.number, "-f", 0, "-o", policy, "--target-risk", 0.4)
        done = wide.segtrust(*command)
        assert done.returncode == 0, done.stderr
        assert "Policy for foreground (certified)" in done.stdout
        done = wide.predict(wide.made.images, out, "-f", 0, "--policy", policy, "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["standing"] == {"foreground": "certified"}
        assert sum(told["counts"].values()) == len(TEST_CASES)
        before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.nii.gz")}
        assert set(before) == {f"{case}.nii.gz" for case in TEST_CASES}
        assert not list(out.glob("*.npz"))
        assert wide.predict(wide.made.images, out, "-f", 0, "--policy", policy).returncode == 0
        assert before == {path.name: path.stat().st_mtime_ns for path in out.glob("*.nii.gz")}
        (out / f"{TEST_CASES[0]}.nii.gz").unlink()
        done = wide.predict(wide.made.images, out, "-f", 0, "--policy", policy)
        assert done.returncode == 2
        assert "--no-resume" in done.stderr

    def test_predictions_of_nnunet_are_decided_on_with_its_own_options(self, wide, tmp_path):
        policy = tmp_path / "policy.json"
        command = ("nnunet", "calibrate", wide.number, "-f", 0, "-o", policy, "--target-risk", 0.4)
        assert wide.segtrust(*command).returncode == 0
        command = ("nnunet", "triage", wide.made.predictions, "--policy", policy, "--json")
        for name, options, expected in (
            ("same", ("-f", 0), "certified"),
            ("ensemble", ("-f", "0,1,2,3,4"), "estimated"),
        ):
            done = wide.segtrust(*command, "-o", tmp_path / name, *MODEL_OPTIONS, *options)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["standing"] == {"foreground": expected}

    def test_a_broken_image_does_not_stop_the_others(self, plain, tmp_path):
        images = shutil.copytree(plain.made.images, tmp_path / "images")
        (images / f"{TEST_CASES[0]}_0000.nii.gz").write_bytes(b"no image")
        done = plain.predict(images, tmp_path / "out", "--disable-tta", "--truth", plain.made.labels)
        assert done.returncode == 1, done.stderr
        table = read_table(tmp_path / "out/scores.csv")
        assert table.column("case") == [TEST_CASES[1]]
        assert 0.5 < table.column("dice")[0] <= 1
        assert table.about["predictor"].endswith("/fold_0 (without mirroring)")
        (failed,) = read_table(tmp_path / "out/failures.csv").rows
        assert failed["case"] == TEST_CASES[0]
        assert Path(failed["file"]).name == f"{TEST_CASES[0]}_0000.nii.gz"
