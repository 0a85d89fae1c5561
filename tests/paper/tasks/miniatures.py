"""Data sets of a few small cases, in the layouts in which their owners distribute them."""

from pathlib import Path

import numpy as np


def blob(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """An ellipsoid off the centre, as truth values."""
    lengths = np.array(shape)
    centre, radii = lengths * rng.uniform(0.4, 0.6, len(shape)), lengths * rng.uniform(0.15, 0.3, len(shape))
    offsets = (np.indices(shape).T - centre) / radii
    return ((offsets**2).sum(-1) < 1.0).T


def picture(rng: np.random.Generator, mask: np.ndarray, *, dark: int = 40, bright: int = 160) -> np.ndarray:
    """Colours that are brighter where the mask is."""
    grey = np.where(mask, bright, dark)[..., None] + rng.normal(0.0, 12.0, (*mask.shape, 3))
    return grey.clip(0, 255).astype(np.uint8)


def save(path: Path, values: np.ndarray) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


def save_volume(path: Path, values: np.ndarray) -> None:
    """Write an array with the axes (z, y, x)."""
    import nibabel

    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values.T, np.diag([1.0, 1.0, 2.0, 1.0])), path)


def busi(folder: Path, *, benign: int = 8, malignant: int = 4, side: int = 48) -> Path:
    """BUSI: masks beside the images, a second and a third one for some."""
    rng = np.random.default_rng(0)
    for name, number in (("benign", benign), ("malignant", malignant)):
        for at in range(1, number + 1):
            mask = blob(rng, (side, side + 8))
            stem = folder / name / f"{name} ({at}).png"
            save(stem, picture(rng, mask))
            first = mask.copy()
            if at == 1:  # two lesions more, each with a mask of its own
                first[:, : mask.shape[1] // 2] = False
                for extra, part in enumerate((slice(0, side // 2), slice(side // 2, None)), 1):
                    other = np.zeros_like(mask)
                    other[part, : mask.shape[1] // 2] = mask[part, : mask.shape[1] // 2]
                    save(stem.with_name(f"{stem.stem}_mask_{extra}.png"), other)
            save(stem.with_name(f"{stem.stem}_mask.png"), np.uint8(255) * first)
    save(folder / "normal" / "normal (1).png", picture(rng, mask))
    return folder


def isic(folder: Path, *, side: int = 40) -> Path:
    rng = np.random.default_rng(1)
    for part, numbers in (("Training", range(8)), ("Validation", range(8, 10)), ("Test", range(10, 14))):
        for number in numbers:
            mask, name = blob(rng, (side, side + 8)), f"ISIC_{number:07}"
            save(folder / f"ISIC2018_Task1-2_{part}_Input" / f"{name}.jpg", picture(rng, mask))
            truth = folder / f"ISIC2018_Task1_{part}_GroundTruth" / f"{name}_segmentation.png"
            save(truth, np.uint8(255) * mask)
        (folder / f"ISIC2018_Task1-2_{part}_Input" / "ATTRIBUTION.txt").write_text("licence")
    return folder


def nuclei(folder: Path, *, as_published: bool = False, side: int = 40) -> Path:
    """Dark and bright images; as published, with a mask for each nucleus."""
    rng = np.random.default_rng(2)
    for number in range(12):
        mask = blob(rng, (side, side))
        colours = (
            picture(rng, mask, dark=15, bright=90) if number < 8 else picture(rng, mask, dark=210, bright=150)
        )
        if not as_published:
            save(folder / "images" / f"{number:02}.png", colours)
            save(folder / "masks" / f"{number:02}.png", np.uint8(255) * mask)
            continue
        save(folder / f"{number:02}" / "images" / f"{number:02}.png", colours)
        for half, part in enumerate((slice(0, side // 2), slice(side // 2, None))):
            one = np.zeros_like(mask)
            one[part] = mask[part]
            save(folder / f"{number:02}" / "masks" / f"nucleus{half}.png", np.uint8(255) * one)
    return folder


def hippocampus(folder: Path) -> Path:
    rng = np.random.default_rng(3)
    for number in range(10):
        shape = tuple(int(each) for each in rng.integers((20, 24, 18), (28, 34, 26)))
        mask = blob(rng, shape)
        labels = mask.astype(np.uint8)
        labels[: shape[0] // 2] *= 2
        image = (1000.0 * mask + rng.normal(500.0, 100.0, shape)).clip(1).astype(np.float32)
        save_volume(folder / "imagesTr" / f"hippocampus_{number:03}.nii.gz", image)
        save_volume(folder / "labelsTr" / f"hippocampus_{number:03}.nii.gz", labels)
    return folder


def shifts(folder: Path) -> Path:
    """The Shifts archives: two sites, parts in and out of distribution, brain masks that are not needed."""
    rng = np.random.default_rng(4)
    parts = (("best", "train", 3), ("best", "dev_in", 1), ("msseg", "train", 2), ("msseg", "eval_in", 3))
    for site, part, number in (*parts, ("ljubljana", "dev_out", 3)):
        for at in range(1, number + 1):
            brain, lesion = np.ones((36, 40, 34), np.float32), blob(rng, (36, 40, 34))
            brain[:3] = 0.0
            flair = brain * (300.0 + 200.0 * lesion + rng.normal(0.0, 30.0, lesion.shape))
            at_folder = folder / site / part
            save_volume(at_folder / "flair" / f"{at}_FLAIR_isovox.nii.gz", flair.astype(np.float32))
            save_volume(at_folder / "gt" / f"{at}_gt_isovox.nii.gz", (lesion * (brain > 0)).astype(np.uint8))
            save_volume(at_folder / "fg_mask" / f"{at}_isovox_fg_mask.nii.gz", brain.astype(np.uint8))
    return folder


def disc_and_cup(rng: np.random.Generator, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels (0, 1 disc, 2 cup) and a photograph."""
    rows, columns = np.indices((side, side)) - rng.uniform(0.4, 0.6, 2)[:, None, None] * side
    distance = np.hypot(rows, columns) / side
    labels = (distance < 0.12).astype(np.uint8) + (distance < 0.06)
    return labels.astype(np.uint8), picture(rng, labels > 0, dark=90, bright=200)


def fundus_sets(folder: Path, *, side: int = 96) -> Path:
    """REFUGE with its grey masks at several depths; ORIGA and G1020 with labels, one without a cup."""
    rng = np.random.default_rng(5)
    photographs = ("Training400/Glaucoma", "Training400/Non-Glaucoma", "REFUGE-Validation400", "Test400")
    masks = (
        "Annotation/Disc_Cup_Masks/Glaucoma",
        "Annotation/Disc_Cup_Masks/Non-Glaucoma",
        "GT/Masks",
        "Test-GT",
    )
    for letter, images, truths in zip("gnVT", photographs, masks, strict=True):
        for number in range(1, 4):
            labels, photograph = disc_and_cup(rng, side)
            save(folder / "REFUGE" / images / f"{letter}{number:04}.jpg", photograph)
            greys = np.array([255, 128, 0], np.uint8)[labels]
            save(folder / "REFUGE" / truths / f"{letter}{number:04}.bmp", greys)
    for name, stem in (("ORIGA", "{:03}"), ("G1020", "image_{}")):
        for number in range(3):
            labels, photograph = disc_and_cup(rng, side)
            labels = labels.clip(max=1) if name == "G1020" and number == 0 else labels
            save(folder / name / "Images" / f"{stem.format(number)}.jpg", photograph)
            save(folder / name / "Masks" / f"{stem.format(number)}.png", labels)
    return folder


def drishti(folder: Path, *, side: int = 96) -> Path:
    rng = np.random.default_rng(6)
    rows = []
    levels = np.array([0, 64, 128, 191, 255], np.uint8)
    for number in range(10):
        labels, photograph = disc_and_cup(rng, side)
        name = f"drishtiGS_{number:03}"
        save(folder / "images" / f"{name}.jpg", photograph)
        for structure, least in (("disc", 1), ("cup", 2)):
            agreed = np.where(
                labels >= least, rng.choice(levels[2:], labels.shape), rng.choice(levels[:2], labels.shape)
            )
            save(folder / f"softmaps_{structure}" / f"{name}.png", agreed.astype(np.uint8))
        rows.append(f"{'Test' if number < 3 else 'Training'},{name}.png\n")
    (folder / "split.csv").write_text("".join(rows))
    return folder


def polyps(folder: Path, *, side: int = 40) -> Path:
    """The usual training and test folders, with masks whose grey values lie between black and white."""
    rng = np.random.default_rng(7)
    tested = ("Kvasir", "CVC-ClinicDB", "CVC-300", "CVC-ColonDB", "ETIS-LaribPolypDB")
    places = [
        ("TrainDataset", "image", "mask", 4),
        *((f"TestDataset/{name}", "images", "masks", 2) for name in tested),
    ]
    for place, images, masks, number in places:
        for at in range(number):
            mask = blob(rng, (side, side + 8))
            save(folder / place / images / f"{at}.png", picture(rng, mask))
            greys = np.where(mask, rng.choice([200, 255], mask.shape), rng.choice([0, 30], mask.shape))
            save(folder / place / masks / f"{at}.png", greys.astype(np.uint8))
    return folder


def published_maps(folder: Path, data: Path) -> Path:
    """8-bit maps, as large as the masks, in a folder for each test set."""
    from PIL import Image

    rng = np.random.default_rng(8)
    for path in sorted(data.glob("TestDataset/*/masks/*.png")):
        mask = np.asarray(Image.open(path)) >= 128
        p = np.where(mask, 0.8, 0.2) + rng.uniform(-0.2, 0.2, mask.shape)
        save(folder / path.parts[-3] / path.name, np.rint(255 * p).astype(np.uint8))
    return folder


def brats(folder: Path, *, cases: int = 7) -> Path:
    """BraTS 2020: four sequences a patient, labels 1, 2 and 4, some files unpacked."""
    rng = np.random.default_rng(9)
    for number in range(1, cases + 1):
        name = f"BraTS20_Training_{number:03}"
        shape = (20, 24, 22)
        offsets = (np.indices(shape).T - np.array(shape) / 2) / (np.array(shape) * rng.uniform(0.28, 0.34))
        distance = np.sqrt((offsets**2).sum(-1)).T
        labels = np.select([distance < 0.4, distance < 0.7, distance < 1.0], [4, 1, 2], 0).astype(np.uint8)
        ending = ".nii" if number == 1 else ".nii.gz"
        at_folder = folder / "MICCAI_BraTS2020_TrainingData" / name
        for sequence in ("t1", "t1ce", "t2", "flair"):
            image = 100.0 + 60.0 * (labels > 0) + 60.0 * (labels == 4) + rng.normal(0.0, 10.0, shape)
            save_volume(at_folder / f"{name}_{sequence}{ending}", image.astype(np.float32))
        save_volume(at_folder / f"{name}_seg{ending}", labels)
    return folder
