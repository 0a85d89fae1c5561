"""DICOM files for tests: a series of slices, and segmentations of it that another library writes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

STRAIGHT = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
OBLIQUE = (0.8, 0.6, 0.0, -0.36, 0.48, 0.8)
SIZE = (5, 7)
SPACING = (0.5, 0.75)
ORIGIN = (10.0, -20.0, 30.0)


@dataclass(frozen=True)
class Series:
    """How the slices of an image lie."""

    count: int = 4
    orientation: tuple[float, ...] = STRAIGHT
    step: float = 2.5
    heights: tuple[float, ...] = field(default=())

    def position(self, number: int) -> list[float]:
        x, y = np.reshape(self.orientation, (2, 3))
        height = self.heights[number] if self.heights else number * self.step
        return [round(float(each), 6) for each in np.add(ORIGIN, height * np.cross(x, y))]


REGULAR = Series()


def source_images(series: Series) -> list[Any]:
    from pydicom.uid import generate_uid

    study, image_series, frame_of_reference = generate_uid(), generate_uid(), generate_uid()
    uids = {
        "StudyInstanceUID": study,
        "SeriesInstanceUID": image_series,
        "FrameOfReferenceUID": frame_of_reference,
    }
    return [_slice(series, number, uids) for number in range(series.count)]


def _slice(series: Series, number: int, uids: dict[str, str]) -> Any:
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

    made = Dataset()
    empty = ("StudyDate", "StudyTime", "AccessionNumber", "ReferringPhysicianName", "StudyID")
    known = {
        **dict.fromkeys((*empty, "PatientBirthDate", "PatientSex", "PositionReferenceIndicator"), ""),
        **uids,
        "SOPClassUID": CTImageStorage,
        "SOPInstanceUID": generate_uid(),
        "PatientID": "1",
        "PatientName": "Phantom^",
        "Modality": "CT",
        "SeriesNumber": 1,
        "InstanceNumber": number + 1,
        "ImagePositionPatient": series.position(number),
        "ImageOrientationPatient": list(series.orientation),
        "PixelSpacing": list(SPACING),
        "SliceThickness": series.step,
        "Rows": SIZE[0],
        "Columns": SIZE[1],
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "BitsAllocated": 16,
        "BitsStored": 16,
        "HighBit": 15,
        "PixelRepresentation": 0,
        "PixelData": bytes(2 * SIZE[0] * SIZE[1]),
    }
    for name, value in known.items():
        setattr(made, name, value)
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    made.file_meta.MediaStorageSOPClassUID = CTImageStorage
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID
    return made


def _description(number: int, name: str) -> Any:
    import highdicom
    from pydicom.sr.codedict import codes

    algorithm = highdicom.AlgorithmIdentificationSequence(
        name="a model", family=codes.DCM.ArtificialIntelligence, version="1"
    )
    return highdicom.seg.SegmentDescription(
        segment_number=number,
        segment_label=name,
        segmented_property_category=codes.SCT.Organ,
        segmented_property_type=codes.SCT.Liver,
        algorithm_type="AUTOMATIC",
        algorithm_identification=algorithm,
    )


def segmentation(
    pixels: Any, kind: str, *, series: Series = REGULAR, names=("liver", "spleen"), **more
) -> Any:
    """Make a segmentation of (z, y, x, segments), or of labels (z, y, x)."""
    import highdicom
    from pydicom.uid import generate_uid

    return highdicom.seg.Segmentation(
        source_images=source_images(series),
        pixel_array=pixels,
        segmentation_type=kind,
        segment_descriptions=[_description(number + 1, name) for number, name in enumerate(names)],
        series_instance_uid=generate_uid(),
        series_number=2,
        sop_instance_uid=generate_uid(),
        instance_number=1,
        manufacturer="nobody",
        manufacturer_model_name="none",
        software_versions="1",
        device_serial_number="1",
        **more,
    )


def save(dataset: Any, path: Path) -> Path:
    dataset.save_as(path, enforce_file_format=True)
    return path
