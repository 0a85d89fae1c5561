"""The optic cup in fundus photographs: Segtran on squares about the disc; REFUGE, ORIGA and G1020."""

from __future__ import annotations

from segtrust.paper.tasks import (
    ID,
    OOD,
    SEGTRAN_CODE,
    SEGTRAN_PAPER,
    Source,
    Task,
    cut_to_disc,
    disc_cup_target,
    find_fundus,
    half_grey_refuge,
)
from segtrust.paper.tasks.fundus_layout import NUMBERS

TASK = Task(
    name="optic-cup",
    title="Optic cup in fundus photographs (REFUGE, ORIGA, G1020)",
    network="segtran",
    size=(576, 576),
    input_size=(288, 288),
    find=find_fundus,
    labels=NUMBERS,
    foreground=2,
    target=disc_cup_target,
    preprocess=cut_to_disc,
    normalise=half_grey_refuge,
    split={"train": 960, "test": 240},
    sets={ID: 1200, OOD: 650 + 1020},
    recipes={"paper": SEGTRAN_PAPER, "code": SEGTRAN_CODE},
    source=Source(
        url="https://refuge.grand-challenge.org, ORIGA-light, https://www.dfki.uni-kl.de/g1020",
        licence="REFUGE: the terms of the challenge; ORIGA and G1020: for research, ask their owners",
        citation="Orlando et al., REFUGE challenge, Medical Image Analysis 59, 2020; Zhang et al., "
        "ORIGA-light, EMBC 2010; Bajwa et al., G1020, IJCNN 2020",
        layout="'REFUGE', 'ORIGA' and 'G1020', in each at any depth .jpg photographs and masks of the same "
        "names: .bmp (cup 0, disc 128, background 255) or .png in a folder 'Masks' (background 0, disc 1, "
        "cup 2). A table 'boxes.csv' (case, top, left, bottom, right) tells the squares, else the masks do.",
    ),
)
