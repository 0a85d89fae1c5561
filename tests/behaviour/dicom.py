"""A DICOM segmentation of probabilities, written by highdicom."""

from typing import Any

import numpy as np

SPACING = (0.75, 0.5)
STEP = 3.0


def write_probability_segmentation(path, *maps, names=("liver", "spleen")):
    """Write 8-bit maps (z, y, x), one per segment, as a fractional segmentation of a CT."""
    import highdicom
    from pydicom.uid import generate_uid

    pixels = np.stack(maps, axis=-1)
    made = highdicom.seg.Segmentation(
        source_images=_slices(pixels.shape[:3]),
        pixel_array=pixels.astype(np.float32) / 255,
        segmentation_type="FRACTIONAL",
        fractional_type="PROBABILITY",
        max_fractional_value=255,
        segment_descriptions=[
            _description(number, name) for number, name in enumerate(names[: len(maps)], 1)
        ],
        series_instance_uid=generate_uid(),
        series_number=2,
        sop_instance_uid=generate_uid(),
        instance_number=1,
        manufacturer="nobody",
        manufacturer_model_name="none",
        software_versions="1",
        device_serial_number="1",
        omit_empty_frames=False,
    )
    made.save_as(path, enforce_file_format=True)


def _slices(shape) -> list[Any]:
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

    names = ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID")
    uids = {name: generate_uid() for name in names}
    empty = ("StudyDate", "StudyTime", "AccessionNumber", "ReferringPhysicianName", "StudyID")
    empty = (*empty, "PatientBirthDate", "PatientSex", "PositionReferenceIndicator")
    found = []
    for number in range(shape[0]):
        image = Dataset()
        known = {
            **dict.fromkeys(empty, ""),
            **uids,
            "SOPClassUID": CTImageStorage,
            "SOPInstanceUID": generate_uid(),
            "PatientID": "1",
            "PatientName": "Phantom^",
            "Modality": "CT",
            "SeriesNumber": 1,
            "InstanceNumber": number + 1,
            "ImagePositionPatient": [10.0, -20.0, 30.0 + STEP * number],
            "ImageOrientationPatient": [1, 0, 0, 0, 1, 0],
            "PixelSpacing": list(SPACING),
            "SliceThickness": STEP,
            "Rows": shape[1],
            "Columns": shape[2],
            "SamplesPerPixel": 1,
            "PhotometricInterpretation": "MONOCHROME2",
            "BitsAllocated": 16,
            "BitsStored": 16,
            "HighBit": 15,
            "PixelRepresentation": 0,
            "PixelData": bytes(2 * shape[1] * shape[2]),
        }
        for name, value in known.items():
            image.add(_element(name, value))
        image.file_meta = FileMetaDataset()
        image.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        image.file_meta.MediaStorageSOPClassUID = CTImageStorage
        image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
        found.append(image)
    return found


def _element(name, value):
    from pydicom.datadict import dictionary_VR, tag_for_keyword
    from pydicom.dataelem import DataElement

    tag = tag_for_keyword(name)
    kind = dictionary_VR(tag)
    return DataElement(tag, "OW" if kind == "OB or OW" else kind, value)


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
