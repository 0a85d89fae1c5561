"""Cases whose pictures are known to the pixel, and what is seen of them on the screen."""

import io
import math
import time
from dataclasses import dataclass

import nibabel
import numpy as np
from PIL import Image

from segtrust.io import ArrayRef, CaseFiles

MASK_COLOUR = (255, 122, 26)
TRUTH_COLOUR = (46, 230, 255)


@dataclass(frozen=True)
class Box:
    """Where something lies, as shares of a frame: left, right, top and bottom."""

    left: float
    right: float
    top: float
    bottom: float

    def close_to(self, other, within=0.02):
        mine, others = ((each.left, each.right, each.top, each.bottom) for each in (self, other))
        return bool(np.allclose(mine, others, atol=within))


def box_of(is_set, frame=None):
    """The box around all pixels that are set, as shares of the picture or of a box in pixels."""
    rows, columns = np.flatnonzero(is_set.any(1)), np.flatnonzero(is_set.any(0))
    assert rows.size, "nothing is set"
    top, bottom, left, right = frame or (0, is_set.shape[0], 0, is_set.shape[1])
    across, down = right - left, bottom - top
    return Box(
        (columns[0] - left) / across,
        (columns[-1] + 1 - left) / across,
        (rows[0] - top) / down,
        (rows[-1] + 1 - top) / down,
    )


def frame_of(is_set):
    """Top, bottom, left and right of all pixels that are set."""
    rows, columns = np.flatnonzero(is_set.any(1)), np.flatnonzero(is_set.any(0))
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def shot(page):
    """What is seen of the picture, black where buttons and notes lie over it: (rows, columns, 3)."""
    stage, buttons = (page.locator(each).bounding_box() for each in (".stage", ".stage .zoom"))
    left, top = math.ceil(stage["x"]), math.ceil(stage["y"])
    clip = {"x": left, "y": top, "width": int(stage["width"]) - 1, "height": int(stage["height"]) - 1}
    png = page.screenshot(clip=clip)
    seen = np.array(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    seen[int(buttons["y"]) - top - 4 :, int(buttons["x"]) - left - 4 :] = 0
    for note in page.locator(".stage .picture-note").all():
        box = note.bounding_box()
        seen[: math.ceil(box["y"] + box["height"]) - top, : math.ceil(box["x"] + box["width"]) - left] = 0
    return seen


def shot_when(page, is_right, seconds=30.0):
    """What is seen once it is right: drawing comes a moment after what has caused it."""
    deadline = time.monotonic() + seconds
    while not is_right(seen := shot(page)):
        assert time.monotonic() < deadline, "the picture never became what it should be"
        page.wait_for_timeout(20)
    return seen


def other_than(before):
    """Tell whether a picture has changed."""
    return lambda seen: bool((seen != before).any())


def same_as(before):
    """Tell whether a picture is as it was."""
    return lambda seen: bool((seen == before).all())


def has_colour(seen, colour, within=40):
    """Where a picture has a colour."""
    return (abs(seen - np.array(colour)) <= within).all(-1)


def differs(one, other):
    """Where two pictures differ visibly."""
    return (abs(one - other) > 30).any(-1)


def save_arrays(folder, name, **arrays):
    """Save arrays as files; give where each is."""
    folder.mkdir(parents=True, exist_ok=True)
    places = {}
    for role, values in arrays.items():
        path = folder / f"{name}_{role}.npy"
        np.save(path, values)
        places[role] = ArrayRef(path)
    return places


PICTURE_SHAPE = (160, 200)
MASK = (slice(40, 100), slice(120, 170))
TRUTH = (slice(50, 120), slice(100, 160))
LEFT, RIGHT = (255, 60, 40), (40, 80, 255)  # from black to full, so that they are seen as they are


def picture(folder):
    """A picture of two colours; its mask lies on the right, its truth a little lower."""
    p, truth = np.zeros(PICTURE_SHAPE, np.float32), np.zeros(PICTURE_SHAPE, np.uint8)
    p[MASK], truth[TRUTH] = 0.95, 1
    image = np.empty((*PICTURE_SHAPE, 3), np.uint8)
    image[:, :100], image[:, 100:] = LEFT, RIGHT
    places = save_arrays(folder, "picture", probabilities=p, truth=truth)
    Image.fromarray(image).save(folder / "picture.png")
    return CaseFiles("picture", image=ArrayRef(folder / "picture.png"), **places)


def grey(folder):
    """A picture of 16 bits: grey from left to right."""
    p = np.zeros(PICTURE_SHAPE, np.float32)
    p[MASK] = 0.95
    image = np.broadcast_to(np.linspace(0, 4000, PICTURE_SHAPE[1]), PICTURE_SHAPE).astype(np.uint16)
    return CaseFiles("grey", **save_arrays(folder, "grey", probabilities=p, image=image))


def large(folder):
    """A map of 3000 × 2500 in chunks; what is found in it runs across many tiles."""
    import zarr

    down, across = np.ogrid[-1:1:3000j, -1:1:2500j]
    p = np.clip(1.6 - 2.2 * np.hypot(down, across - 0.1), 0, 1).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    with zarr.config.set({"array.write_empty_chunks": True}):
        made = zarr.create_array(str(folder / "large.zarr"), shape=p.shape, chunks=(500, 500), dtype=p.dtype)
        made[:] = p
    return CaseFiles("large", ArrayRef(folder / "large.zarr"))


ROOM = (30, 24, 10)  # right, anterior, superior
INSIDE = (slice(14, 26), slice(4, 14), slice(3, 8))  # the middle of the room is in it, at its rim
UNCERTAIN = 6


def room():
    """A map and an image in the order right, anterior, superior; the image has a bright rim."""
    p, image = np.zeros(ROOM, np.float32), np.full(ROOM, 255.0, np.float32)
    p[INSIDE] = 0.95
    p[INSIDE[0], INSIDE[1], UNCERTAIN] = 0.6
    image[1:-1, 1:-1, 1:-1] = np.random.default_rng(0).uniform(0, 120, tuple(n - 2 for n in ROOM))
    return p, image


@dataclass(frozen=True)
class Storing:
    """How a file keeps a room: in which order its axes come, and which of them run backwards."""

    order: tuple = (0, 1, 2)
    backwards: tuple = ()
    spacing_mm: tuple = (1.0, 1.2, 2.5)

    def save(self, path, values):
        stored, affine = np.transpose(values, self.order), np.zeros((4, 4))
        affine[3, 3] = 1.0
        for axis, direction in enumerate(self.order):
            backwards, step = direction in self.backwards, self.spacing_mm[direction]
            affine[direction, axis] = -step if backwards else step
            affine[direction, 3] = step * (stored.shape[axis] - 1) if backwards else 0.0
            stored = np.flip(stored, axis) if backwards else stored
        nibabel.save(nibabel.Nifti1Image(np.ascontiguousarray(stored), affine), path)

    @property
    def through(self):
        """The direction in which slices are counted: that of the last axis of the file."""
        return self.order[2]

    def slice_of(self, at):
        """The number from 0 on that the desk gives to a place of that direction."""
        return ROOM[self.through] - 1 - at if self.through in self.backwards else at

    def box(self):
        """Where the mask must be seen: right or anterior is left, anterior or superior is up."""
        across, up = (each for each in range(3) if each != self.through)
        of = [(INSIDE[each].start / ROOM[each], INSIDE[each].stop / ROOM[each]) for each in (across, up)]
        return Box(1 - of[0][1], 1 - of[0][0], 1 - of[1][1], 1 - of[1][0])


STORINGS = {
    "straight": Storing(),
    "as DICOM": Storing(backwards=(0, 1)),
    "all backwards": Storing(backwards=(0, 1, 2)),
    "coronal": Storing(order=(2, 0, 1), backwards=(1,)),
    "sagittal": Storing(order=(1, 2, 0), backwards=(0, 2)),
}


def volume(folder, name):
    """The room in a NIfTI file."""
    folder.mkdir(parents=True, exist_ok=True)
    p, image = room()
    paths = {role: folder / f"{name}_{role}.nii.gz" for role in ("probabilities", "image")}
    for path, values in zip(paths.values(), (p, image), strict=True):
        STORINGS[name].save(path, values)
    return CaseFiles(name, **{role: ArrayRef(path) for role, path in paths.items()})
