"""TotalSegmentator's names: from its package, and from the headers of what it writes."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import UnknownNameError
from segtrust.io.label_tables import label_table
from segtrust.io.nnunet import read_scheme
from segtrust.io.totalsegmentator import names_task
from tests.totalsegmentator_files import write_segmentation

LABELS = np.zeros((4, 4, 4), np.uint8)


def scheme(task):
    return read_scheme(Path(f"totalsegmentator:{task}"))


@pytest.mark.needs("totalsegmentator")
class TestTasks:
    def test_a_task_of_one_model(self):
        found = scheme("total")
        assert found.channels == 118
        assert found.labels[4] == ("liver", (5,))
        assert not found.is_regions
        assert len(found.chosen(["each"])) == 117
        assert found.chosen(["spleen"])[0].channel == 1

    @pytest.mark.parametrize("part", ["ribs", "class_map_part_ribs"])
    def test_one_of_several_models(self, part):
        found, whole = scheme(f"total/{part}"), scheme("total")
        assert found.channels == 27
        names = dict(whole.labels)
        assert all(names[name] == values for name, values in found.labels)
        assert found.known == whole.known  # the masks are those of all parts
        assert found.usual.values == tuple(sorted(value for _, (value,) in found.labels))

    def test_parts_are_those_of_the_task(self):
        ct, mr = scheme("total/organs"), scheme("total_mr/organs")
        assert (ct.channels, mr.channels) == (25, 30)
        assert "vertebrae_L6" in dict(scheme("total_v3/vertebrae").labels)
        assert "vertebrae_L6" not in dict(scheme("total/vertebrae").labels)

    def test_what_is_taken_out_of_masks_is_not_scored(self):
        found = scheme("kidney_cysts")
        assert found.channels == 5
        assert [each.name for each in found.chosen(["each"])] == ["kidney_cyst_left", "kidney_cyst_right"]
        assert found.chosen(["kidney_left"])[0].channel == 3

    def test_every_task_has_a_scheme(self):
        from totalsegmentator.map_to_binary import class_map
        from totalsegmentator.registry import TASKS

        for task in TASKS:
            if task in class_map:
                found = scheme(task)
                assert [values for _, values in found.labels] == [(i,) for i in range(1, found.channels)]

    def test_unknown_names_list_the_known_ones(self):
        with pytest.raises(UnknownNameError, match=r"task of TotalSegmentator 'totl'; available: .*total, "):
            scheme("totl")
        with pytest.raises(UnknownNameError, match="'total' 'rips'; there are: organs, vertebrae, cardiac"):
            scheme("total/rips")
        with pytest.raises(UnknownNameError, match="'body' 'ribs'; there are: none"):
            scheme("body/ribs")


def test_paths_are_no_tasks():
    assert not names_task(Path("a/totalsegmentator:total/dataset.json"))


class TestLabelTables:
    @pytest.mark.needs("totalsegmentator", "nibabel")
    @pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
    def test_names_that_the_package_wrote(self, tmp_path, ending):
        names = {1: "spleen", 2: "kidney & <ureter>", 117: "costal_cartilages"}
        path = write_segmentation(tmp_path / f"a{ending}", LABELS, names)
        assert label_table(path) == names

    @pytest.mark.needs("nibabel")
    def test_files_without_names(self, tmp_path):
        import nibabel

        image = nibabel.Nifti1Image(LABELS, np.eye(4))
        nibabel.save(image, tmp_path / "plain.nii.gz")
        image.header.extensions.append(nibabel.nifti1.Nifti1Extension(6, b"a comment <Label Key='1'>"))
        nibabel.save(image, tmp_path / "comment.nii")
        assert label_table(tmp_path / "plain.nii.gz") == label_table(tmp_path / "comment.nii") == {}

    @pytest.mark.parametrize(
        "content",
        [b"", b"\x1f\x8b", b"\x5c\x01\0\0", gzip.compress(b"x" * 900, mtime=0), bytes(400), b"\xff" * 900],
    )
    def test_damaged_files_tell_none(self, tmp_path, content):
        path = tmp_path / "a.nii.gz"
        path.write_bytes(content)
        assert label_table(path) == {}

    def test_text_as_xml_writes_it(self, tmp_path):
        body = b'<LabelTable><Label Key="3" Red="1">left &amp; right</Label></LabelTable>'
        head = bytearray(352 + len(body))
        head[:4], head[108:112] = (348).to_bytes(4, "little"), np.float32(352 + len(body)).tobytes()
        head[352:] = body
        (tmp_path / "a.nii").write_bytes(head)
        assert label_table(tmp_path / "a.nii") == {3: "left & right"}
        assert label_table(tmp_path / "missing.nii") == {}
