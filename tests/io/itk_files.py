"""Small files of MetaImage and NRRD, right or wrong in one field."""

META = {
    "ObjectType": "Image",
    "NDims": "2",
    "BinaryData": "True",
    "DimSize": "3 2",
    "ElementType": "MET_UCHAR",
    "ElementDataFile": "LOCAL",
}
NRRD = {"type": "uint8", "dimension": "2", "sizes": "3 2", "encoding": "raw"}
PIXELS = bytes(range(6))


def write_meta(folder, pixels=PIXELS, name="a.mha", **fields):
    """Write a MetaImage; fields that are ``None`` are left out, and the data file is named last."""
    last = fields.pop("ElementDataFile", META["ElementDataFile"])
    wanted = {**META, **fields, "ElementDataFile": last}
    wanted["ElementDataFile"] = wanted.pop("ElementDataFile")
    lines = [f"{field} = {value}\n" for field, value in wanted.items() if value is not None]
    (folder / name).write_bytes("".join(lines).encode() + pixels)
    return folder / name


def write_nrrd(folder, pixels=PIXELS, name="a.nrrd", **fields):
    """Write a NRRD file; an underscore in the name of a field is a space."""
    wanted = {**NRRD, **fields}
    lines = [f"{field.replace('_', ' ')}: {value}\n" for field, value in wanted.items() if value is not None]
    (folder / name).write_bytes(b"NRRD0004\n" + "".join(lines).encode() + b"\n" + pixels)
    return folder / name
