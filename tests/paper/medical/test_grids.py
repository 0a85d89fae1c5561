"""Tables as papers print them."""

from segtrust.paper.medical.grids import Cell, Grid, write_grid

GRID = Grid(
    "AURC",
    ["", "Polyp ID", "A & B"],
    {
        "SDC": [Cell("0.035", "0.036", is_best=True), Cell("")],
        "PLA* (10%)": [Cell("0.048 ± 0.004"), Cell("–", "–")],
        "oracle": [Cell("0.027"), Cell("1.5 %")],
    },
    "Notes.",
    frozenset({"oracle"}),
)


def test_markdown():
    assert GRID.markdown().splitlines() == [
        "|  | Polyp ID | A & B |",
        "|---|---|---|",
        "| SDC | **0.035** [0.036] |  |",
        r"| PLA\* (10%) | 0.048 ± 0.004 | – [–] |",
        "| oracle | 0.027 | 1.5 % |",
        "",
        "Notes.",
    ]


def test_latex():
    assert GRID.latex().splitlines() == [
        r"\begin{tabular}{lcc}",
        r"\toprule",
        r" & Polyp ID & A \& B \\",
        r"\midrule",
        r"SDC & \textbf{0.035} [0.036] &  \\",
        r"PLA* (10\%) & 0.048 $\pm$ 0.004 & -- [--] \\",
        r"\midrule",
        r"oracle & 0.027 & 1.5 \% \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_files(tmp_path):
    write_grid(GRID, tmp_path / "areas")
    assert (tmp_path / "areas.md").read_text().endswith("Notes.\n")
    assert (tmp_path / "areas.tex").read_text().startswith(r"\begin{tabular}")
