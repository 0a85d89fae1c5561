"""No file is ever found half-written: all are drafts first, which take their place when they are whole."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "segtrust"

METHODS = {
    "write_text",
    "write_bytes",
    "savefig",
    "WriteImage",
    "to_csv",
    "to_parquet",
    "ParquetWriter",
    "tofile",
    "symlink_to",
}
"""Of whatever they are."""
OF_LIBRARIES = {
    "save",
    "savez",
    "savez_compressed",
    "savetxt",
    "dump",
    "write_table",
    "copy",
    "move",
    "create_array",
}
LIBRARIES = {"np", "numpy", "torch", "nibabel", "parquet", "shutil", "json", "pickle", "zarr"}
OWN_STEPS = {"atomic_write", "atomic_write_all", "replacing", "replacing_all"}
# Writers that are handed a draft, or write what nobody takes for a whole file, and why that is so.
ALLOWED = {
    "_files.py atomic_write_all": "is what gives drafts their names",
    "io/table.py _write_csv": "is handed a draft by write_table",
    "io/table.py _write_csv_with_hidden": "is handed drafts by write_table",
    "io/table.py _write_json": "is handed a draft by write_table",
    "io/table.py _write_parquet": "is handed a draft by write_table",
    "io/mask_files.py _write_nifti": "is handed a draft by write_mask",
    "io/mask_files.py _write_itk": "is handed a draft by write_mask",
    "io/mask_files.py _write_png": "is handed a draft by write_mask",
    "io/mask_files.py _write_npy": "is handed a draft by write_mask",
    "paper/tasks/training.py _only_here": "a lock, which holds nothing",
    "engine/triage.py _write_links": "links are there or not",
    "paper/tasks/nnunet.py _link": "links are there or not",
    "policy/policy.py save": "is that of Storable, which writes a draft",
    "policy/structures.py save": "is that of Storable, which writes a draft",
    "review/tiles.py png_of": "writes into memory",
    "_files.py sync_files": "opens what is there, and writes nothing",
}
# Data for tests and for measurements, which are made anew each time.
FREE = ("testing/", "paper/tasks/contract.py")


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def owner_of(call: ast.Call) -> str:
    return getattr(getattr(call.func, "value", None), "id", "")


def mode_of(call: ast.Call) -> str:
    """Mode of an ``open``: the first argument of a path's, the second of the builtin."""
    place = 0 if isinstance(call.func, ast.Attribute) else 1
    given = [each.value for each in call.keywords if each.arg == "mode"] or call.args[place : place + 1]
    return str(given[0].value) if given and isinstance(given[0], ast.Constant) else "r"


def writes(call: ast.Call) -> bool:
    """Whether a call writes a file; ``str.replace`` takes two arguments, ``Path.replace`` one."""
    name, owner = name_of(call), owner_of(call)
    if not isinstance(call.func, ast.Attribute):
        return name == "open" and bool(set(mode_of(call)) & set("wax+"))
    if name == "open":
        return bool(set(mode_of(call)) & set("wax+"))
    if name in {"rename", "replace"}:
        return len(call.args) == 1 and not call.keywords
    is_picture = name == "save" and isinstance(call.func.value, ast.Call)  # Image.fromarray(…).save(path)
    return name in METHODS or is_picture or (name in OF_LIBRARIES and owner in LIBRARIES)


def is_safe(node: ast.AST) -> bool:
    """Whether it is a ``with`` that gives drafts."""
    return isinstance(node, ast.With) and any(
        isinstance(item.context_expr, ast.Call) and name_of(item.context_expr) in OWN_STEPS
        for item in node.items
    )


def unsafe_writes(node: ast.AST, function: str = "") -> Iterator[tuple[str, int]]:
    """Give function and line of each call that writes outside of such a ``with``."""
    if is_safe(node):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = node.name
    if isinstance(node, ast.Call) and writes(node):
        yield function, node.lineno
    for child in ast.iter_child_nodes(node):
        yield from unsafe_writes(child, function)


@cache
def found() -> dict[str, str]:
    """Unsafe writes by file and function."""
    listed = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(FREE):
            for function, line in unsafe_writes(ast.parse(path.read_text())):
                listed[f"{name} {function}"] = f"{name}:{line}"
    return listed


def test_every_file_is_a_draft_first():
    unexplained = {place: where for place, where in found().items() if place not in ALLOWED}
    assert not unexplained, "write it inside of `with atomic_write(path) as draft`, or say why not in ALLOWED"


def test_no_reason_is_given_for_what_is_not_there():
    assert not set(ALLOWED) - set(found())


def test_writes_are_seen():
    text = (
        "def f(p):\n p.write_text('')\n with p.open('w') as file: pass\n open(p, mode='ab')\n np.save(p, 1)\n"
        " with atomic_write(p) as draft:\n  draft.write_text('')\n p.open('rb')\n p.read_text()\n"
    )
    assert [line for _, line in unsafe_writes(ast.parse(text))] == [2, 3, 4, 5]
