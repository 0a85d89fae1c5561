"""How files of a data set find together, for the declarations of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from segtrust.paper.tasks.task import Sample

__all__ = ["PICTURES", "VOLUMES", "files_in", "paired"]

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
VOLUMES = (".nii", ".nii.gz", ".mha", ".nrrd")


def files_in(folder: Path, endings: tuple[str, ...] = PICTURES) -> list[Path]:
    """Give the files of these endings in a folder, by name; none where it does not exist."""
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.name.lower().endswith(endings) and not path.name.startswith(".") and path.is_file()
    )


def stem_of(path: Path) -> str:
    """Give a name without its ending, ``.nii.gz`` included."""
    return path.name.removesuffix(".gz").rpartition(".")[0]


def paired(
    images: Iterable[Path],
    masks: Iterable[Path],
    *,
    image_case: Callable[[Path], str] = stem_of,
    mask_case: Callable[[Path], str] = stem_of,
) -> Iterator[Sample]:
    """Put images and masks of the same case together; several masks of one are united.

    Of several images of one name nobody knows which is meant: such a case says so in ``lacks``.

    Parameters
    ----------
    images, masks
        Files.
    image_case, mask_case
        Give the name of the case that a file belongs to.

    Examples
    --------
    >>> [sample] = paired([Path("images/a.jpg")], [Path("masks/a.png")])
    >>> sample.case, sample.masks[0].name
    ('a', 'a.png')
    """
    found: dict[str, Sample] = {}
    for path in images:
        case = image_case(path)
        known = found.get(case)
        if known is None:
            found[case] = Sample(case, images=(path,))
        else:
            said = f"several images of this name: {known.images[0]} and {path}. Keep one of them."
            found[case] = replace(known, lacks=said)
    for path in masks:
        case = mask_case(path)
        known = found.get(case, Sample(case))
        found[case] = replace(known, masks=(*known.masks, path))
    yield from (found[case] for case in sorted(found))
