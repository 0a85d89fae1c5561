"""The review desk's HTTP interface, of ``segtrust review`` as a process that really listens."""

import csv
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from tests.behaviour.decision_data import MODEL, SETTINGS, make_case, rows_of_maps, write_rows
from tests.behaviour.helpers import assert_golden, assert_same
from tests.commands import segtrust

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "nibabel", "PIL")
TOKEN = "only for this test"
ROUNDING = 1e-15  # relative_error is a difference from 1
CHANGING = ("instance", "time", "version", "seconds", "text", "note", "reason")


def read_rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_run(folder):
    """Score nine flat cases with ground truth and images, one of them empty, and a volume; make a policy."""
    import nibabel
    from PIL import Image

    rows = []
    for number in range(9):
        p, truth = make_case(number)
        if number == 4:
            p = p / 4
        name = f"case_{number}"
        np.save(folder / f"{name}.npy", p)
        np.save(folder / f"{name}_truth.npy", truth.astype(np.uint8))
        picture = np.arange(p.size, dtype=np.uint32).reshape(p.shape) * (number + 1) % 251
        Image.fromarray(picture.astype(np.uint8)).save(folder / f"{name}.png")
        place = {"probabilities": f"{name}.npy", "truth": f"{name}_truth.npy", "image": f"{name}.png"}
        rows.append({"case": name, "group": f"patient {number % 2}", **place})
    volume = np.stack([make_case(seed)[0] for seed in range(900, 906)])
    affine = np.diag([-0.5, -0.75, 3.0, 1.0])
    nibabel.save(nibabel.Nifti1Image(volume.T, affine), folder / "volume.nii.gz")
    rows.append({"case": "=volume", "probabilities": "volume.nii.gz"})
    write_rows(folder / "cases.csv", rows)
    done = segtrust("score", folder / "cases.csv", "-o", folder / "run/scores.csv", "--estimators", "sdc,ane")
    assert done.returncode == 0, done.stderr
    scores = folder / "run/scores.csv"
    scored = read_rows(scores)
    for row in scored:
        row["set"] = "ID" if row["truth_file"] else "volumes"
    write_rows(scores, scored)
    known = write_rows(folder / "known.csv", rows_of_maps(160), SETTINGS)
    policy = folder / "policy.json"
    done = segtrust("calibrate", known, "-o", policy, "--target-risk", 0.33, "--predictor", MODEL)
    assert done.returncode == 0, done.stderr
    return folder / "run", policy


@contextmanager
def desk(*arguments):
    """Start a desk on a free port; give its address and its process, which is stopped at the end."""
    command = [sys.executable, "-m", "segtrust", "review", *map(str, arguments)]
    command += ["--port", "0", "--no-open", "--api-only"]
    environment = {**os.environ, "SEGTRUST_TOKEN": TOKEN}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        try:
            yield address_of(process), process
        finally:
            process.kill()


def address_of(process):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 1.0)[0]:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            if found := re.search(r"http://[^\s?]+", line):
                return found.group().rstrip("/")
    raise AssertionError("the desk never said where it listens")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    import httpx

    run, policy = write_run(tmp_path_factory.mktemp("desk"))
    options = ("--policy", policy, "--predictor", MODEL, "--reviewer", "Ann", "--minutes", 4)
    with desk(run, *options) as (base, _):
        headers = {"X-Segtrust": "1", "Origin": base}
        with httpx.Client(base_url=base, headers=headers, timeout=60) as client:
            assert client.get("/", params={"token": TOKEN}).status_code == 200
            yield client


def steady(value):
    """Return an answer without words, times, counters, and checksums of files that hold a time."""
    if isinstance(value, dict):
        kept = {key: steady(inner) for key, inner in value.items() if key not in CHANGING}
        for key in ("policy", "digest"):
            if isinstance(kept.get(key), str) and kept[key]:
                kept[key] = "present"
        if kept.get("audit"):  # the sample follows from the policy's checksum
            kept["audit"] = sorted(kept["audit"])
        return kept
    return [steady(inner) for inner in value] if isinstance(value, list) else value


def get(client, path, code=200, **query):
    answer = client.get(f"/api/{path}", params=query)
    assert answer.status_code == code, answer.text
    return answer


def simplified(schema):
    """Return the types of a JSON schema, without titles and descriptions."""
    if isinstance(schema, dict):
        return {
            key: simplified(value)
            if key != "properties"
            else {name: simplified(value[name]) for name in value}
            for key, value in schema.items()
            if key not in ("title", "description", "summary", "pattern")
        }
    return [simplified(each) for each in schema] if isinstance(schema, list) else schema


def test_schema(served):
    schema = get(served, "openapi.json").json()
    paths = {
        path: {
            method: {
                "parameters": sorted(
                    [each["in"], each["name"], each.get("required", False)]
                    for each in route.get("parameters", [])
                ),
                "body": simplified(route.get("requestBody", {})),
                "answers": {
                    code: simplified(answer.get("content", {})) for code, answer in route["responses"].items()
                },
            }
            for method, route in methods.items()
        }
        for path, methods in schema["paths"].items()
    }
    components = {
        name: sorted(model.get("properties", model.get("enum", [])))
        for name, model in schema["components"]["schemas"].items()
    }
    models = sorted(map(sorted, components.values()))  # names of models are nobody's business
    for methods in paths.values():
        for route in methods.values():
            text = re.sub(r"#/components/schemas/\w+", "a model", json.dumps(route))
            route.update(json.loads(text))
    assert_golden("decisions/desk_schema", {"paths": paths, "models": models})


def test_run(served):
    assert_golden("decisions/desk_run", steady(get(served, "run").json()))


QUERIES = {
    "all": {},
    "by confidence": {"sort": "confidence", "descending": True, "limit": 3},
    "second page": {"sort": "case", "offset": 4, "limit": 4},
    "deferred": {"decision": "defer"},
    "volumes": {"set": "volumes"},
    "patient": {"group": "patient 1"},
    "search": {"search": "case_3"},
    "other threshold": {"threshold": 0.5, "decision": "accept"},
    "place": {"find": 2, "limit": 0},
    "undecided": {"verdict": "undecided", "limit": 0},
}


@pytest.mark.parametrize("name", QUERIES)
def test_worklist(served, name):
    answer = served.get("/api/cases", params=QUERIES[name])
    assert answer.status_code == 200, answer.text
    page = steady(answer.json())
    page["rows"] = [list(row.values()) for row in page["rows"]]
    assert_golden("decisions/desk_cases", page, key=name)


def test_columns_of_the_worklist(served):
    assert_golden("decisions/desk_cases", list(get(served, "cases").json()["rows"][0]), key="columns")


def test_cases(served):
    numbers = {row["case"]: row["number"] for row in get(served, "cases").json()["rows"]}
    found = {
        case: steady(get(served, f"cases/{numbers[case]}").json()) for case in ("case_3", "case_4", "=volume")
    }
    found["other threshold"] = steady(get(served, f"cases/{numbers['case_3']}", threshold=0.9).json())
    assert_golden("decisions/desk_case", found, abs_tol=ROUNDING)


def test_tiles_and_volumes(served):
    import nibabel
    from PIL import Image

    rows = get(served, "cases").json()["rows"]
    numbers = {row["case"]: row["number"] for row in rows}
    found = {}
    for layer in ("image", "probabilities", "mask", "truth"):
        answer = get(served, f"cases/{numbers['case_3']}/tiles/{layer}/0/0/0/0.png")
        assert answer.headers["content-type"] == "image/png"
        image = Image.open(io.BytesIO(answer.content))
        found[layer] = [image.size, image.mode, int(np.asarray(image).astype(np.int64).sum())]
    for layer in ("probabilities", "mask"):
        answer = get(served, f"cases/{numbers['=volume']}/volumes/{layer}.nii")
        volume = nibabel.Nifti1Image.from_bytes(answer.content)
        values = np.asarray(volume.dataobj, float)
        found[f"volume {layer}"] = [volume.shape, volume.affine, float(values.sum())]
    assert_golden("decisions/desk_pictures", found)
    get(served, f"cases/{numbers['=volume']}/volumes/truth.nii", code=404)
    get(served, f"cases/{numbers['case_3']}/tiles/mask/0/0/9/9.png", code=404)


def test_thresholds(served):
    found = {
        "threshold": steady(get(served, "threshold", value=0.5).json()),
        "minutes": steady(get(served, "threshold", value=0.45, minutes=10, structure="foreground").json()),
        "curve": get(served, "curve").json(),
        "budget": get(served, "budget", per_day=2, days=2).json(),
        "monitoring": steady(get(served, "monitoring").json()),
        "alarms": steady(get(served, "alarms").json()),
    }
    reference = found["monitoring"].pop("reference")
    assert len(reference) == 160
    assert_golden("decisions/desk_thresholds", found, rel=1e-10, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("cases/99", {}, 404),
        ("cases/-1", {}, 422),
        ("cases", {"limit": 501}, 422),
        ("cases", {"sort": "beauty"}, 422),
        ("threshold", {}, 422),
        ("threshold", {"value": "nan"}, 422),
        ("threshold", {"value": 0.5, "structure": "absent"}, 404),
        ("budget", {"per_day": -1}, 422),
        ("nothing", {}, 404),
        ("cases/99/tiles/mask/0/0/0/0.png", {}, 404),
        ("cases/0/tiles/beauty/0/0/0/0.png", {}, 422),
    ],
)
def test_what_is_not_there(served, path, query, code):
    answer = get(served, path, code=code, **query)
    assert list(answer.json()) == ["detail"]


def test_verdict_log_undo_and_export(served):
    rows = {row["case"]: row for row in get(served, "cases").json()["rows"]}
    body = {"number": rows["=volume"]["number"], "verdict": "reject", "reviewer": "Ann", "comment": "=1+1"}
    first = served.post("/api/verdicts", json=body)
    assert first.status_code == 200
    wrong = served.post("/api/verdicts", json={**body, "case": "case_3"})
    assert wrong.status_code == 409
    unknown = [
        served.post("/api/verdicts", json={**body, **change}).status_code
        for change in ({"number": 99}, {"verdict": "maybe"}, {"reviewer": ""}, {"more": 1})
    ]
    once = {**body, "number": rows["case_3"]["number"], "verdict": "accept", "request": "0123456789abcdef"}
    twice = [served.post("/api/verdicts", json=once).json()["id"] for _ in range(2)]
    assert twice[0] == twice[1]
    number = first.json()["id"]
    assert get(served, "cases", verdict="undecided").json()["total"] == 8
    theirs = served.post(f"/api/verdicts/{number}/undo", json={"reviewer": "Bob"})
    undone = served.post(f"/api/verdicts/{number}/undo", json={"reviewer": "Ann"})
    again = served.post(f"/api/verdicts/{number}/undo", json={"reviewer": "Ann"})
    absent = served.post("/api/verdicts/99/undo", json={"reviewer": "Ann"})
    codes = [each.status_code for each in (theirs, undone, again, absent)]
    log = get(served, "verdicts").json()
    assert_same(get(served, "export.json").json(), log)
    assert_same(get(served, "verdicts", after=log[0]["id"]).json(), log[1:])
    answer = get(served, "export.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    table = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["comment"] for row in table] == [entry["comment"].replace("=1", "'=1") for entry in log]
    monitoring = get(served, "monitoring").json()
    assert_golden(
        "decisions/desk_verdicts",
        {
            "rejected": unknown,
            "undo": codes,
            "log": steady(log),
            "columns": list(table[0]),
            "agreement": monitoring["agreement"],
        },
    )
    served.post(f"/api/verdicts/{twice[0]}/undo", json={"reviewer": "Ann"})
    assert get(served, "cases", verdict="undecided").json()["total"] == 10


def test_who_is_rejected(served):
    import httpx

    base = str(served.base_url)
    body = {"number": 0, "verdict": "accept", "reviewer": "Ann"}
    own = {"X-Segtrust": "1", "Origin": base.rstrip("/"), "Authorization": f"Bearer {TOKEN}"}

    def ask(path="api/run", **changed):
        headers = {name: value for name, value in {**own, **changed}.items() if value is not None}
        return httpx.get(f"{base}/{path}", headers=headers).status_code

    def send(**changed):
        headers = {name: value for name, value in {**own, **changed}.items() if value is not None}
        return httpx.post(f"{base}/api/verdicts", json=body, headers=headers).status_code

    assert ask() == 200
    assert ask(Authorization=None) == 401
    assert ask(Authorization="Bearer another one") == 401
    assert ask("api/openapi.json", Authorization=None) == 401
    assert ask(Host="evil.example") == 400
    assert send(Origin=None) == 403
    assert send(Origin="http://evil.example") == 403
    assert send(**{"X-Segtrust": None}) == 403
    assert send(Authorization=None) == 401
    assert served.post("/api/verdicts", json={**body, "comment": "x" * 10**6}).status_code == 413
    assert served.delete("/api/verdicts").status_code == 405
    headers = served.get("/api/run").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


def test_it_ends_with_ctrl_c_and_keeps_verdicts(tmp_path):
    import httpx

    table = write_rows(tmp_path / "scores.csv", rows_of_maps(5))
    for entries in (0, 1):
        with desk(table, "--database", f"sqlite:///{tmp_path}/log.sqlite") as (base, process):
            headers = {"X-Segtrust": "1", "Origin": base, "Authorization": f"Bearer {TOKEN}"}
            with httpx.Client(base_url=base, headers=headers, timeout=60) as client:
                assert len(client.get("/api/verdicts").json()) == entries
                body = {"number": 1, "verdict": "accept", "reviewer": "Ann"}
                assert client.post("/api/verdicts", json=body).status_code == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0


@pytest.mark.parametrize("arguments", [(), ("absent",), ("scores.csv", "--database", "mysql://x")])
def test_what_cannot_be_reviewed(tmp_path, arguments):
    write_rows(tmp_path / "scores.csv", rows_of_maps(5))
    paths = [tmp_path / each if each[0] in "as" else each for each in arguments]
    done = segtrust("review", *paths, "--api-only", "--no-open", "--port", 0)
    assert done.returncode == 2
    assert done.stderr
