"""Ask whether what a wheel brings along has known holes, and list all of it; `make dist` does.

    python tools/release_audit.py dist/segtrust-0.1.0-py3-none-any.whl

Beside the wheel are written: two bills of materials (CycloneDX), of the wheel with what it needs, and with
its extras; each lists the packages from npm too that are built into the page of the review desk. Then
``AUDIT.txt``, what pip-audit says of those from PyPI, and ``SHA256SUMS`` of all files.

Exit codes: 0, audited, and nothing is known; 1, holes are known, or something else is wrong; 3, NOT AUDITED,
as without access to the service that knows. ``--unaudited`` makes a 0 of the 3, and of nothing else.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["Audit", "audited", "bill_of_materials", "main", "npm_packages", "python_packages"]

ROOT = Path(__file__).parents[1]
EXTRAS = ("tables", "plots", "io", "learn", "dask", "review")
"""That are looked at; torch, nnU-Net and TotalSegmentator take gigabytes, and are left out."""
NOT_AUDITED = 3
_LONGEST_LICENCE = 60
"""Characters: some packages give the whole text where its name belongs."""
_SHIPPED = re.compile(r"^((?:@[\w.-]+/)?[\w.-]+) (\d[\w.+-]*): ", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """A package that a release brings along.

    Attributes
    ----------
    kind
        ``"pypi"`` or ``"npm"``.
    name, version
        As its registry has them.
    licence
        Empty where it is not told in a few words.
    digest
        SHA-256 or SHA-512 of the archive, as hexadecimal digits; empty where it is not known.
    needs
        Names of other packages of the same kind.
    """

    kind: str
    name: str
    version: str
    licence: str = ""
    digest: str = ""
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Audit:
    """What came of asking.

    Attributes
    ----------
    is_audited
        Whether all packages were looked up.
    told
        Holes, one a line; or why nothing is known.
    """

    is_audited: bool
    told: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 where nothing is known of packages that were all looked up."""
        return int(bool(self.told)) if self.is_audited else NOT_AUDITED

    def __str__(self) -> str:
        """Say it so that nobody takes silence for an answer."""
        if not self.is_audited:
            return f"NOT AUDITED: {' '.join(self.told)}"
        return "\n".join(["AUDITED: holes are known", *self.told] if self.told else ["AUDITED: none known"])


def resolved(wanted: str) -> dict[str, Any]:
    """Let pip tell what it would install, without doing so."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", "install"]
        done = subprocess.run(
            [*pip, "--dry-run", "--ignore-installed", "--report", str(report), wanted],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{wanted}: expected what pip would install, got an error of pip's:\n{done.stderr}")
        return dict(json.loads(report.read_text()))


def python_packages(report: dict[str, Any]) -> list[Package]:
    """Give the packages of a report of pip's."""
    there = {canonicalize_name(each["metadata"]["name"]) for each in report["install"]}
    return [_python_package(each, there) for each in report["install"]]


def _python_package(item: dict[str, Any], there: set[str]) -> Package:
    about = item["metadata"]
    extras = ["", *item.get("requested_extras", ())]
    needs = {canonicalize_name(each.name) for each in _needed(about.get("requires_dist", ()), extras)}
    return Package(
        "pypi",
        about["name"],
        about["version"],
        _licence(about),
        item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", ""),
        tuple(sorted(needs & there)),
    )


def _licence(about: dict[str, Any]) -> str:
    """Give the licence in a few words, as a package or its classifiers tell it."""
    told = about.get("license_expression") or about.get("license") or ""
    classified = [each.rpartition(" :: ")[2] for each in about.get("classifier", ()) if "License" in each]
    is_short = 0 < len(told) <= _LONGEST_LICENCE and "\n" not in told
    return str(told) if is_short else " and ".join(classified)


def _needed(texts: Iterable[str], extras: Sequence[str]) -> list[Requirement]:
    wanted = [Requirement(text) for text in texts]
    return [
        each
        for each in wanted
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def npm_packages(lock: dict[str, Any]) -> list[Package]:
    """Give what a lock file of npm's says is built into the page: all but the tools that build it."""
    kept = {
        place.rpartition("node_modules/")[2]: about
        for place, about in lock["packages"].items()
        if place and not about.get("dev") and not about.get("optional")
    }
    return [_npm_package(name, about, kept.keys()) for name, about in sorted(kept.items())]


def _npm_package(name: str, about: dict[str, Any], there: Iterable[str]) -> Package:
    digest = base64.b64decode(about["integrity"].removeprefix("sha512-")).hex()
    needs = sorted({*about.get("dependencies", ())} & {*there})
    return Package("npm", name, about["version"], about.get("license", ""), digest, tuple(needs))


def bill_of_materials(root: Package, packages: Sequence[Package]) -> str:
    """Give a bill of materials, which was held against the schema of CycloneDX.

    Parameters
    ----------
    root
        What is released.
    packages
        All that it brings along; it needs those that no other one does.
    """
    bom = Bom()
    bom.metadata.component = _component(root, ComponentType.APPLICATION)
    components = {(each.kind, canonicalize_name(each.name)): _component(each) for each in packages}
    bom.components.update(components.values())
    needed = {(each.kind, canonicalize_name(name)) for each in packages for name in each.needs}
    for each in packages:
        needs = [components[each.kind, canonicalize_name(name)] for name in each.needs]
        bom.register_dependency(components[each.kind, canonicalize_name(each.name)], needs)
    named = {("pypi", canonicalize_name(name)) for name in root.needs} & components.keys()
    direct = sorted(named | (components.keys() - needed))
    bom.register_dependency(bom.metadata.component, [components[key] for key in direct])
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"expected a bill of materials by the schema of CycloneDX 1.6, got: {wrong}")
    return text


def _component(package: Package, kind: ComponentType = ComponentType.LIBRARY) -> Component:
    group, _, name = package.name.rpartition("/")
    url = PackageURL(package.kind, group or None, name, package.version)
    algorithm = HashAlgorithm.SHA_512 if package.kind == "npm" else HashAlgorithm.SHA_256
    return Component(
        name=name,
        group=group or None,
        version=package.version,
        type=kind,
        purl=url,
        bom_ref=str(url),
        licenses=[LicenseFactory().make_from_string(package.licence)] if package.licence else (),
        hashes=[HashType(alg=algorithm, content=package.digest)] if package.digest else (),
    )


def audited(packages: Sequence[Package]) -> Audit:
    """Ask pip-audit about packages from PyPI, in these very versions."""
    pins = "".join(f"{each.name}=={each.version}\n" for each in packages if each.kind == "pypi")
    with tempfile.TemporaryDirectory() as folder:
        pinned = Path(folder) / "pinned.txt"
        pinned.write_text(pins)
        how = ["--strict", "--format", "json", "--progress-spinner", "off", "--no-deps", "--disable-pip"]
        done = subprocess.run(
            [sys.executable, "-m", "pip_audit", *how, "--requirement", str(pinned)],
            capture_output=True,
            text=True,
            check=False,
        )
    return judged(done.stdout, done.stderr, len(pins.splitlines()))


def judged(told: str, complaints: str, wanted: int) -> Audit:
    """Read what pip-audit says; whatever is not an answer about every package is none.

    Without ``--strict`` it says "No known vulnerabilities found" of packages that it could not look up.
    """
    try:
        found = json.loads(told)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reasons = [line for line in complaints.splitlines() if line.strip() and "WARNING" not in line]
        last = reasons[-1].strip() if reasons else "pip-audit gave no answer"
        return Audit(False, (re.sub(r"^ERROR:[\w.]+:", "", last),))
    skipped = [each for each in found if "skip_reason" in each or "vulns" not in each]
    if skipped or len(found) < wanted:
        reason = skipped[0].get("skip_reason", "") if skipped else f"{len(found)} of {wanted} looked up"
        return Audit(False, (str(reason),))
    return Audit(True, tuple(_hole(each, hole) for each in found for hole in each["vulns"]))


def _hole(package: dict[str, Any], hole: dict[str, Any]) -> str:
    mended = ", ".join(hole.get("fix_versions", ())) or "no version yet"
    return f"{package['name']} {package['version']}: {hole['id']}, mended in {mended}"


def missing_from(packages: Sequence[Package], wheel: Path) -> list[str]:
    """Give what the page in a wheel names among its licences, and what is not among the packages."""
    known = {(each.name, each.version) for each in packages if each.kind == "npm"}
    with zipfile.ZipFile(wheel) as archive:
        licences = archive.read("segtrust/review/static/licenses.txt").decode()
    return [" ".join(shipped) for shipped in _SHIPPED.findall(licences) if shipped not in known]


def write_sums(folder: Path) -> Path:
    """Write the checksums of all files of a folder, for ``sha256sum --check``."""
    files = sorted(each for each in folder.iterdir() if each.is_file() and each.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files]
    (folder / "SHA256SUMS").write_text("".join(lines))
    return folder / "SHA256SUMS"


def _listed(wheel: Path, extras: Sequence[str], page: Sequence[Package]) -> list[Package]:
    """Write a bill of materials beside a wheel, and give what it lists."""
    asked = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    found = python_packages(resolved(asked))
    (root,) = (each for each in found if each.name == "segtrust")
    packages = [*(each for each in found if each is not root), *page]
    name = f"segtrust-{root.version}{'-extras' if extras else ''}.cdx.json"
    (wheel.parent / name).write_text(bill_of_materials(root, packages) + "\n")
    return packages


def main(arguments: Sequence[str] | None = None) -> int:
    """List and audit what a wheel brings along; see the exit codes above."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--unaudited", action="store_true", help="go on where nobody could be asked")
    asked = parser.parse_args(arguments)
    wheel = asked.wheel.resolve()
    if not wheel.is_file():
        parser.error(f"{asked.wheel}: expected a wheel, got no such file. `make dist` builds one.")
    page = npm_packages(json.loads((ROOT / "web/package-lock.json").read_text()))
    if missing := missing_from(page, wheel):
        sys.stderr.write(f"{wheel.name}: not in the lock file: {', '.join(missing)}\n")
        return 1
    _listed(wheel, (), page)
    found = audited(_listed(wheel, EXTRAS, page))
    (wheel.parent / "AUDIT.txt").write_text(f"{found}\n")
    write_sums(wheel.parent)
    sys.stdout.write(f"{found}\n")
    return 0 if asked.unaudited and not found.is_audited else found.exit_code


if __name__ == "__main__":
    sys.exit(main())
