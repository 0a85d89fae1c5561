"""A release is called clean only if somebody was asked, and all that it brings along is listed."""

import base64
import hashlib
import json
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("cyclonedx", "pip_audit")

if find_spec("cyclonedx"):
    from tools import release_audit

ROOT = Path(__file__).parents[1]
LOCK = json.loads((ROOT / "web/package-lock.json").read_text())

CLEAN = {"dependencies": [{"name": "rich", "version": "13.7.0", "vulns": []}], "fixes": []}
HOLE = {"id": "PYSEC-2099-1", "fix_versions": ["2.0.1"], "aliases": ["CVE-2099-0001"], "description": "…"}
HOLED = {
    "dependencies": [
        {"name": "rich", "version": "13.7.0", "vulns": []},
        {"name": "numpy", "version": "2.0.0", "vulns": [HOLE]},
    ],
    "fixes": [],
}
SKIPPED = {"dependencies": [{"name": "rich", "skip_reason": "Dependency not found on PyPI"}], "fixes": []}
REPORT = {
    "install": [
        {
            "metadata": {
                "name": "segtrust",
                "version": "0.1.0",
                "license_expression": "Apache-2.0",
                "requires_dist": ["NumPy>=2", "h5py>=3; extra == 'io'", "torch>=2; extra == 'models'"],
            },
            "download_info": {"archive_info": {"hashes": {"sha256": "a" * 64}}},
            "requested_extras": ["io"],
        },
        {
            "metadata": {"name": "numpy", "version": "2.1.0", "license": "long\n" * 99},
            "download_info": {},
        },
        {
            "metadata": {"name": "h5py", "version": "3.1.0", "requires_dist": ["numpy>=1"]},
            "download_info": {},
        },
    ]
}


def test_what_pip_says_is_told_where_it_fails(tmp_path):
    absent = str(tmp_path / "absent-1.0-py3-none-any.whl")
    with pytest.raises(SystemExit, match=rf"^{absent}: expected what pip would (.|\n)*ERROR: .*absent"):
        release_audit.resolved(absent)


def test_nothing_known_of_what_was_looked_up_is_clean():
    found = release_audit.judged(json.dumps(CLEAN), "", 1)
    assert (found.exit_code, str(found)) == (0, "AUDITED: none known")


def test_holes_are_told_with_the_version_that_mends_them():
    found = release_audit.judged(json.dumps(HOLED), "Found 1 known vulnerability in 1 package", 2)
    assert found.exit_code == 1
    assert "numpy 2.0.0: PYSEC-2099-1, mended in 2.0.1" in str(found)


@pytest.mark.parametrize(
    ("told", "complaints", "why"),
    [
        ("", "ERROR:pip_audit._cli:rich: Dependency not found on PyPI", "NOT AUDITED: rich: Dependency not"),
        ("", "Traceback …\nrequests.exceptions.ConnectionError: no route", "NOT AUDITED: requests.exc"),
        ("", "", "NOT AUDITED: pip-audit gave no answer"),
        (json.dumps(SKIPPED), "No known vulnerabilities found", "NOT AUDITED: Dependency not found"),
        (json.dumps(CLEAN), "No known vulnerabilities found", "NOT AUDITED: 1 of 2 looked up"),
        ("[]", "", "NOT AUDITED"),
    ],
)
def test_who_was_not_asked_is_not_called_clean(told, complaints, why):
    found = release_audit.judged(told, complaints, 2)
    assert found.exit_code == release_audit.NOT_AUDITED == 3
    assert str(found).startswith(why)


def test_a_bill_of_materials_lists_all_with_what_needs_what():
    packages = release_audit.python_packages(REPORT)
    root, *others = packages
    assert root.needs == ("h5py", "numpy")
    text = release_audit.bill_of_materials(root, [*others, *release_audit.npm_packages(LOCK)])
    bill = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    needs = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    assert needs["pkg:pypi/h5py@3.1.0"] == ["pkg:pypi/numpy@2.1.0"]
    niivue = f"pkg:npm/%40niivue/niivue@{LOCK['packages']['node_modules/@niivue/niivue']['version']}"
    assert {"pkg:pypi/numpy@2.1.0", "pkg:pypi/h5py@3.1.0", niivue} <= {*needs["pkg:pypi/segtrust@0.1.0"]}
    listed = {each["purl"]: each for each in bill["components"]}
    assert listed[niivue]["hashes"][0]["alg"] == "SHA-512"
    assert "licenses" not in listed["pkg:pypi/numpy@2.1.0"]


def test_what_is_not_by_the_schema_is_refused():
    root = release_audit.Package("pypi", "segtrust", "0.1.0", digest="no digits")
    with pytest.raises(ValueError, match=r"expected a bill of materials by the schema of CycloneDX 1\.6"):
        release_audit.bill_of_materials(root, [])


def test_tools_that_build_the_page_are_no_part_of_it():
    found = {each.name: each for each in release_audit.npm_packages(LOCK)}
    assert {"@niivue/niivue", "preact"} <= found.keys()
    assert not {"typescript", "vite", "vitest"} & found.keys()
    kept = LOCK["packages"]["node_modules/preact"]["integrity"]
    assert base64.b64encode(bytes.fromhex(found["preact"].digest)).decode() == kept.removeprefix("sha512-")


def test_what_is_built_into_the_page_must_be_listed(tmp_path):
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("segtrust/review/static/licenses.txt", "preact 9.9.9: MIT\n\nText\n@a/b 1.0: ISC\n")
    packages = [release_audit.Package("npm", "@a/b", "1.0")]
    assert release_audit.missing_from(packages, wheel) == ["preact 9.9.9"]


def test_checksums_are_those_of_all_files(tmp_path):
    (tmp_path / "a.whl").write_bytes(b"wheel")
    (tmp_path / "AUDIT.txt").write_text("NOT AUDITED: nobody was asked\n")
    lines = release_audit.write_sums(tmp_path).read_text().splitlines()
    assert [line.split("  ")[1] for line in lines] == ["AUDIT.txt", "a.whl"]
    assert lines[1].startswith(hashlib.sha256(b"wheel").hexdigest())


@pytest.mark.slow
def test_pip_audit_answers_or_it_is_said_that_it_did_not():
    """The real one, wherever this runs: with access to its service or without."""
    package = release_audit.Package("pypi", "rich", "13.7.0")
    found = release_audit.audited([package])
    assert str(found).startswith("AUDITED: " if found.is_audited else "NOT AUDITED: ")
    assert found.is_audited or found.exit_code == release_audit.NOT_AUDITED


@pytest.mark.needs("bandit")
def test_bandit_finds_faults_by_the_settings_of_this_project(tmp_path):
    """`make lint` runs it over all files, and wants it to say nothing."""
    (tmp_path / "bad.py").write_text("import tempfile\nprint(tempfile.mktemp())\n")
    command = [sys.executable, "-m", "bandit", "--quiet", "--configfile", str(ROOT / "pyproject.toml")]
    done = subprocess.run([*command, str(tmp_path / "bad.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "B306" in done.stdout
