"""Each route against what its numbers are made of, over a server that really listens."""

import csv
import io
import threading

import nibabel
import numpy as np
import pytest
from PIL import Image

from segtrust.engine import check_drift, decide_rows
from segtrust.io import Table, write_table
from segtrust.selective import (
    ExchangeabilityMartingale,
    Target,
    chernoff_interval,
    failure_detection,
    risk_coverage_curve,
)
from tests.review import desks


def column(table, name):
    return np.array([row[name] for row in table.rows])


def get(client, path, **query):
    answer = client.get(f"/api/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_run(pictured, counted):
    _, client = pictured
    run = get(client, "run")
    assert (run["rows"], run["finished"], run["failures"], run["estimator"]) == (8, True, 0, "sdc")
    assert (run["sets"], run["groups"]) == (["ID", "volumes"], ["patient 0", "patient 1", "patient 2"])
    assert (run["has_truth"], run["has_loss"], run["policies"], run["minutes"]) == (True, True, {}, 6.0)
    assert run["loss"] == {"name": "dice", "label": "1 − Dice", "unit": ""}
    desk, client, _ = counted
    (policy,) = desk.policies.values()
    told = get(client, "run")["policies"]["foreground"]
    assert (told["threshold"], told["digest"], told["standing"]) == (
        policy.threshold,
        policy.fingerprint,
        "certified",
    )
    assert told["targets"] == [
        {"risk": 0.35, "below_dice": None, "text": "the mean loss of accepted cases is at most 0.35"}
    ]


def test_pages_are_the_worklist(counted):
    desk, client, table = counted
    rows = decide_rows(desk.policies)(table.rows)
    expected = sorted(range(len(rows)), key=lambda i: (rows[i]["decision"] != "defer", rows[i]["sdc"], i))
    found = []
    for offset in range(0, 1500, 400):
        page = get(client, "cases", offset=offset, limit=400)
        assert page["total"] == 1500
        found += page["rows"]
    assert [row["number"] for row in found] == expected
    first = rows[expected[0]]
    assert found[0] == {
        "number": expected[0],
        **{name: first[name] for name in ("case", "structure", "set", "group", "margin", "decision", "dice")},
        "confidence": first["sdc"],
        "digest": "",
        "verdict": None,
    }


def test_pages_by_a_threshold_filter_and_search(counted):
    _, client, table = counted
    accepted = int((column(table, "sdc") >= 0.8).sum())
    found = get(client, "cases", threshold=0.8, decision="accept", limit=0)
    assert (found["total"], found["rows"]) == (accepted, [])
    assert get(client, "cases", set="other", limit=0)["total"] == 300
    assert get(client, "cases", search="CASE 0012")["total"] == 10
    assert get(client, "cases", offset=10_000)["rows"] == []
    by_dice = [row["dice"] for row in get(client, "cases", sort="dice", descending=True)["rows"]]
    assert by_dice == sorted(column(table, "dice").tolist(), reverse=True)[:100]


@pytest.mark.parametrize("value", [0.0, 0.613, 0.8, 0.95, 2.0])
def test_threshold(counted, value):
    desk, client, table = counted
    confidence, loss = column(table, "sdc"), 1 - column(table, "dice")
    found = get(client, "threshold", value=value, minutes=30)
    passed = int((confidence >= value).sum())
    point = risk_coverage_curve(confidence, loss).at_threshold(value)
    assert (found["accepted"], found["deferred"], found["no_finding"]) == (passed, 1500 - passed, 0)
    assert (found["coverage"], found["hours"]) == (point.coverage, (1500 - passed) / 2)
    if passed:
        assert found["risk"] == point.risk
        assert [found["low"], found["high"]] == list(chernoff_interval(point.risk, passed, 0.95))
    else:
        assert [found[name] for name in ("risk", "low", "high")] == [None] * 3
    (policy,) = desk.policies.values()
    assert found["certified"]["holds"] == (value >= policy.threshold)
    (limit,) = found["certified"]["limits"]
    assert (limit["risk"], limit["observed"]) == (0.35, found["risk"])
    assert found["certified"]["probability"] == 0.95
    own = get(client, "threshold", value=policy.threshold)["certified"]
    assert (own["holds"], own["tested"]) == (True, True)


def test_the_place_of_a_row_is_found_in_any_list(counted):
    _, client, _ = counted
    listed = [row["number"] for row in get(client, "cases", set="other", sort="dice", limit=300)["rows"]]
    for place in (0, 7, 299):
        found = get(client, "cases", set="other", sort="dice", limit=0, find=listed[place])
        assert (found["place"], found["rows"]) == (place, [])
    assert get(client, "cases", set="ID", limit=0, find=listed[0])["place"] is None
    assert get(client, "cases", limit=0)["place"] is None


def test_a_case_is_decided_by_the_threshold_that_is_tried(counted):
    _, client, table = counted
    confidence = table.rows[3]["sdc"]
    for threshold, decision in ((confidence, "accept"), (confidence + 1e-6, "defer")):
        found = get(client, "cases/3", threshold=threshold)
        assert (found["decision"], found["margin"]) == (decision, confidence - threshold)


def test_a_verdict_says_what_was_shown(counted):
    desk, client, table = counted
    (policy,) = desk.policies.values()
    found = desks.said(client, 5, reviewer="shown")
    assert (found["policy"], found["confidence"]) == (policy.fingerprint, table.rows[5]["sdc"])
    assert found["decision"] == ("accept" if table.rows[5]["sdc"] >= policy.threshold else "defer")
    client.post(f"/api/verdicts/{found['id']}/undo", json={"reviewer": "shown"})


def test_every_limit_of_a_policy_is_held_against_the_cases(tmp_path):
    table = desks.write_scores(tmp_path / "calibration.csv", 400)
    targets = (Target(0.35), Target(0.3, below_dice=0.5))
    policy = desks.write_policy(tmp_path / "policy.json", table, targets=targets)
    worse = [{**row, "dice": row["dice"] / 2} for row in desks.rows_of(600, seed=1)]
    write_table(tmp_path / "scores.csv", Table.of(worse))
    confidence, dice = (np.array([row[name] for row in worse]) for name in ("sdc", "dice"))
    with desks.desk_on(tmp_path / "scores.csv", policy=policy, predictor=desks.PREDICTOR) as (desk, client):
        (found,) = desk.policies.values()
        certified = get(client, "threshold", value=found.threshold)["certified"]
        everything = get(client, "threshold", value=2.0)["certified"]
    accepted = dice[confidence >= found.threshold]
    mean, share = certified["limits"]
    np.testing.assert_allclose(mean["observed"], np.mean(1 - accepted))
    np.testing.assert_allclose(share["observed"], np.mean(accepted < 0.5))
    assert [each["text"] for each in certified["limits"]] == [str(each) for each in targets]
    assert (certified["holds"], mean["broken"], share["broken"]) == (True, True, True)
    assert [(each["observed"], each["broken"]) for each in everything["limits"]] == [(None, False)] * 2


def test_curve(counted):
    _, client, table = counted
    curve = risk_coverage_curve(column(table, "sdc"), 1 - column(table, "dice"))
    found = get(client, "curve", structure="foreground")
    assert len(found["thresholds"]) <= 1000
    assert (found["thresholds"][0], found["coverages"][-1]) == (curve.thresholds[1], 1.0)
    for threshold, coverage, risk in zip(*found.values(), strict=True):
        assert (coverage, risk) == curve.at_threshold(threshold)[1:]


@pytest.mark.parametrize("reviews", [0, 1, 37, 700, 1499, 1500, 9000])
def test_budget(counted, reviews):
    _, client, table = counted
    confidence, loss = column(table, "sdc"), 1 - column(table, "dice")
    found = get(client, "budget", per_day=reviews, days=1, minutes=10)
    candidates = [each for each in np.unique(confidence) if (confidence < each).sum() <= reviews]
    below = confidence < candidates[-1] if reviews < 1500 else np.ones(1500, bool)
    assert found["threshold"] == (candidates[-1] if reviews < 1500 else None)
    assert (found["reviewed"], found["hours"]) == (below.sum(), pytest.approx(below.sum() / 6))
    assert found["coverage"] == (~below).mean()
    assert found["caught"] == pytest.approx(loss[below].sum() / loss.sum())
    assert found["risk"] == (pytest.approx(loss[~below].mean()) if reviews < 1500 else None)


def test_monitoring(counted):
    desk, client, table = counted
    (policy,) = desk.policies.values()
    new = table.rows[400:]  # the policy was made with the others
    found = get(client, "monitoring")
    assert found["reference"] == sorted(column(table, "sdc")[:400].tolist())
    assert found["new"] == [row["sdc"] for row in new]
    assert found["left_out"] == 400
    test = check_drift(new, desk.policies)["foreground"]
    assert found["drift"] == {"alarm": test.alarm, "text": test.explain(), "p_value": test.p_value}
    watch = ExchangeabilityMartingale(found["reference"])
    watch.extend(found["new"])
    assert found["martingale"]["values"] == [state.log10_capital for state in watch.history]
    assert found["martingale"]["alarm_at"] == pytest.approx(np.log10(20))
    assert policy.structure == "foreground"


def test_other_cases_of_the_same_names_are_new(tmp_path):
    """Names such as 1 and 2 are in many sets: what has another confidence is another case."""
    policy = desks.write_policy(tmp_path / "policy.json", desks.write_scores(tmp_path / "known.csv", 400))
    table = desks.write_scores(tmp_path / "new/scores.csv", 400, seed=1, ties=False)
    table = Table.of([{**row, "sdc": 0.5 * row["sdc"]} for row in table.rows])
    write_table(tmp_path / "new/scores.csv", table)
    with desks.desk_on(tmp_path / "new", policy=policy, predictor=desks.PREDICTOR) as (_, client):
        found = get(client, "monitoring")
    assert (len(found["new"]), found["left_out"]) == (400, 0)
    assert found["drift"]["alarm"]


def test_agreement(counted):
    _, client, table = counted
    chosen = {3: "accept", 40: "reject", 77: "accept", 500: "correct", 1200: "accept"}
    entries = [desks.said(client, number, verdict, "agreeing") for number, verdict in chosen.items()]
    found = get(client, "monitoring")["agreement"]
    confidence = column(table, "sdc")[list(chosen)]
    accepted = np.array([verdict == "accept" for verdict in chosen.values()])
    assert found["auroc"] == failure_detection(confidence, 1.0 - accepted, cutoff=0.5).auroc
    assert [sum(each[name] for each in found["bins"]) for name in ("accepted", "not_accepted")] == [3, 2]
    for each in found["bins"]:
        inside = (confidence >= each["low"]) & (confidence < each["high"])
        assert each["accepted"] == (inside & accepted).sum()
    for entry in entries:
        client.post(f"/api/verdicts/{entry['id']}/undo", json={"reviewer": "agreeing"})
    assert get(client, "monitoring")["agreement"]["auroc"] is None


def test_detail_of_pictures_with_hostile_names(pictured):
    _, client = pictured
    for number, name in enumerate(desks.HOSTILE):
        found = get(client, f"cases/{number}")
        assert (found["case"], found["problem"], found["history"]) == (name, None, [])
        assert found["view"] == {
            "dimensions": 2,
            "shape": [300, 280],
            "spacing_mm": None,
            "layers": ["image", "probabilities", "mask", "truth"],
            "levels": 2,
            "tile": 256,
            "plane": {"rows": 300, "columns": 280, "aspect": 1.0, "letters": ""},
            "slices": {"middle": 0, "uncertain": 0},
            "window": {"low": 0.0, "high": 254.0, "least": 0.0, "most": 255.0},
            "note": "",
        }
        assert found["scores"]["sdc"] == found["confidence"]
        assert "file" not in found["scores"]


@pytest.mark.parametrize(("layer", "shape"), [("image", (300, 280, 3)), ("probabilities", (300, 280))])
def test_tiles_make_up_the_picture(pictured, layer, shape):
    _, client = pictured
    whole = np.zeros(shape, np.uint8)
    for row in range(2):
        for column_ in range(2):
            answer = client.get(f"/api/cases/1/tiles/{layer}/0/0/{row}/{column_}.png")
            assert answer.headers["content-type"] == "image/png"
            tile = np.asarray(Image.open(io.BytesIO(answer.content)))
            whole[row * 256 : row * 256 + tile.shape[0], column_ * 256 : column_ * 256 + tile.shape[1]] = tile
    image = np.random.default_rng(1).integers(0, 256, (300, 280, 3), np.uint8)
    shown = np.rint(np.minimum(image / 254, 1) * 255)
    expected = shown if layer == "image" else np.rint(255 * desks.blob((300, 280), 1))
    assert np.array_equal(whole, expected)


def test_volumes(pictured):
    _, client = pictured
    view = get(client, "cases/6")["view"]
    assert (view["dimensions"], view["shape"], view["layers"]) == (
        3,
        [9, 20, 24],
        ["image", "probabilities", "mask"],
    )
    np.testing.assert_allclose(view["spacing_mm"], [3.0, 0.7, 0.5], rtol=1e-6)
    assert view["window"]["least"] < view["window"]["low"] < view["window"]["high"] < view["window"]["most"]
    p = desks.blob((9, 20, 24), 50)
    answer = client.get("/api/cases/6/volumes/probabilities.nii")
    found = nibabel.Nifti1Image.from_bytes(answer.content)
    assert np.array_equal(np.asarray(found.dataobj).T, np.rint(255 * p))
    assert view["plane"] == {"rows": 20, "columns": 24, "aspect": pytest.approx(1.4), "letters": "RLAP"}
    filled = np.flatnonzero((p >= 0.4).any((1, 2)))
    middle = filled[filled.size // 2]
    assert view["slices"]["middle"] == middle
    tile = client.get(f"/api/cases/6/tiles/mask/{middle}/0/0/0.png").content
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(tile))), 255 * (p[middle] >= 0.4))


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("cases/8", 404),
        ("cases/-1", 422),
        ("cases/99999999999999999999", 422),
        ("cases/abc", 422),
        ("cases/%2B0.0", 422),
        ("cases/0/tiles/image/0/77/0/0.png", 404),
        ("cases/0/volumes/image.nii", 404),
        ("cases/6/volumes/truth.nii", 404),
        ("cases/6/volumes/scores.nii", 422),
        ("cases/6/tiles/image/9/0/0/0.png", 404),
        ("cases/0/tiles/image/1/0/0/0.png", 404),
        ("cases/0/tiles/image/0/2/0/0.png", 404),
        ("cases/0/tiles/image/0/0/2/0.png", 404),
        ("cases/6/tiles/image/0/0/0/0.png?low=nan&high=1", 422),
        ("cases?limit=501", 422),
        ("cases?threshold=inf", 422),
        ("cases?sort=file", 422),
        ("threshold?value=nan", 422),
        ("threshold", 422),
        ("threshold?value=1&structure=none", 404),
        ("curve?structure=none", 404),
        ("monitoring?structure=none", 404),
        ("budget", 422),
        ("budget?per_day=-1", 422),
        ("verdicts?after=99999999999999999999", 422),
        ("none", 404),
    ],
)
def test_what_is_not_there_or_makes_no_sense(pictured, path, status):
    _, client = pictured
    answer = client.get(f"/api/{path}")
    assert answer.status_code == status
    assert desks.detail(answer)


@pytest.mark.parametrize(
    "body",
    [
        {"number": 0, "verdict": "perhaps", "reviewer": "ann"},
        {"number": 0, "verdict": "accept", "reviewer": ""},
        {"number": 0, "verdict": "accept", "reviewer": " ann"},
        {"number": 0, "verdict": "accept", "reviewer": "a\x00b"},
        {"number": 0, "verdict": "accept", "reviewer": "a\u202eb"},
        {"number": 0, "verdict": "accept", "reviewer": "a" * 101},
        {"number": 0, "verdict": "accept", "reviewer": "ann", "comment": "bell\x07"},
        {"number": 0, "verdict": "accept", "reviewer": "ann", "comment": "x" * 4001},
        {"number": 0, "verdict": "accept", "reviewer": "ann", "file": "/etc/passwd"},
        {"number": "x", "verdict": "accept", "reviewer": "ann"},
        [],
        None,
    ],
)
def test_verdicts_that_are_refused(pictured, body):
    desk, client = pictured
    assert client.post("/api/verdicts", json=body).status_code == 422
    assert desk.store.entries() == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b'{"number": 0, "verdict": "accept", "reviewer": "\\ud800"}']
)
def test_bodies_that_are_no_json(pictured, content):
    _, client = pictured
    answer = client.post("/api/verdicts", content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert desks.detail(answer)


def test_verdicts_undo_and_export(run_folder):
    with desks.desk_on(run_folder) as (_, client):
        comment = "<img src=x onerror=alert(1)>\nsecond line"
        entry = desks.said(client, 4, "correct", "Ann Ö", comment=comment, case="=1+1")
        assert (entry["number"], entry["case"], entry["holds"]) == (4, "=1+1", True)
        other = desks.said(client, 4, "reject", "bob")
        assert get(client, "cases/4")["verdict"] == "reject"
        assert [each["reviewer"] for each in get(client, "cases/4")["history"]] == ["Ann Ö", "bob"]
        assert get(client, "cases", verdict="mine", reviewer="Ann Ö")["total"] == 1
        assert get(client, "cases", verdict="mine", reviewer="eve")["total"] == 0
        assert get(client, "cases", verdict="undecided")["total"] == 7
        assert get(client, "verdicts", after=entry["id"]) == [other]
        undo = f"/api/verdicts/{other['id']}/undo"
        assert client.post(undo, json={"reviewer": "Ann Ö"}).status_code == 403
        assert client.post(undo, json={"reviewer": "bob"}).json()["undoes"] == other["id"]
        assert client.post(undo, json={"reviewer": "bob"}).status_code == 409
        assert client.post("/api/verdicts/77/undo", json={"reviewer": "bob"}).status_code == 404
        assert get(client, "cases/4")["verdict"] == "correct"
        listed = get(client, "export.json")
        assert [each["holds"] for each in listed] == [True, False, False]
        assert listed[0]["comment"] == comment
        text = client.get("/api/export.csv").content.decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert [row["holds"] for row in rows] == ["1", "0", "0"]
        assert (rows[0]["case"], rows[0]["comment"]) == ("'=1+1", comment)
        assert get(client, "run")["reviewers"] == ["Ann Ö", "bob"]
        wrong = client.post(
            "/api/verdicts", json={"number": 4, "verdict": "accept", "reviewer": "bob", "case": "another"}
        )
        assert (wrong.status_code, "Look at it again" in desks.detail(wrong)) == (409, True)
    with desks.desk_on(run_folder) as (_, client):  # a new desk finds what was said
        assert get(client, "export.json") == listed
    (run_folder / "verdicts.sqlite").unlink()


def test_a_verdict_that_is_sent_again_is_written_once(tmp_path):
    """Also to a desk that was started anew, where the row has another number."""
    rows = desks.rows_of(5)
    body = {"number": 1, "verdict": "reject", "reviewer": "ann", "comment": "a rim", "request": "0" * 32}
    body |= {"case": rows[1]["case"], "set": "ID", "structure": "foreground", "digest": ""}
    answers = []
    for listed in (rows, rows[::-1]):
        write_table(tmp_path / "scores.csv", Table.of(listed))
        with desks.desk_on(tmp_path) as (_, client):
            answers += [client.post("/api/verdicts", json=body).json() for _ in range(2)]
            for change in ({"verdict": "accept"}, {"comment": ""}, {"reviewer": "bob"}, {"case": "other"}):
                assert client.post("/api/verdicts", json=body | change).status_code == 409
            assert len(get(client, "export.json")) == 1
    assert {each["id"] for each in answers} == {1}
    assert [each["number"] for each in answers] == [1, 1, 3, 3]


@pytest.mark.parametrize("request_", ["", "short", "x" * 65, "with a blank in it", "semi;colon-0123456789"])
def test_names_of_requests_that_are_refused(pictured, request_):
    _, client = pictured
    body = {"number": 0, "verdict": "accept", "reviewer": "ann", "request": request_}
    assert client.post("/api/verdicts", json=body).status_code == 422


def test_two_reviewers_at_once(tmp_path):
    desks.write_scores(tmp_path / "scores.csv", 60)
    with desks.desk_on(tmp_path) as (_, client):

        def decide(name):
            for number in range(60):
                desks.said(client, number, "accept" if name == "ann" else "reject", name)

        threads = [threading.Thread(target=decide, args=(name,)) for name in ("ann", "bob")]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        entries = get(client, "export.json")
        assert {(each["reviewer"], each["number"]) for each in entries} == {
            (name, number) for name in ("ann", "bob") for number in range(60)
        }
        assert all(each["holds"] for each in entries)
        for name in ("ann", "bob"):
            assert get(client, "cases", verdict="mine", reviewer=name)["total"] == 60
        assert get(client, "cases", verdict="undecided")["total"] == 0


def test_files_that_are_gone_are_a_problem_not_an_error(tmp_path):
    folder = desks.make_run(tmp_path / "run", names=["a", "b"])
    (folder / "files/0.npy").unlink()
    (folder / "files/1.png").write_bytes(b"no picture")
    with desks.desk_on(folder) as (_, client):
        found = get(client, "cases/0")
        assert (found["view"], "got no such file" in found["problem"]) == (None, True)
        assert client.get("/api/cases/0/tiles/mask/0/0/0/0.png").status_code == 409
        assert get(client, "cases/1")["view"]["layers"] == ["probabilities", "mask", "truth"]
        assert client.get("/api/cases/1/tiles/image/0/0/0/0.png").status_code == 404


def test_a_map_that_is_written_again_is_shown_as_it_is_now(tmp_path):
    folder = desks.make_run(tmp_path / "run", names=["a"])
    with desks.desk_on(folder) as (_, client):
        path = "/api/cases/0/tiles/probabilities/0/0/0/0.png"
        before = client.get(path).content
        np.save(folder / "files/0.npy", desks.blob((300, 280), 9))
        assert client.get(path).content != before


def test_the_interface_describes_itself(pictured):
    _, client = pictured
    described = get(client, "openapi.json")["paths"]
    assert len(described) == 14
    for path, methods in described.items():
        for method in methods.values():
            assert {"200", "400", "401", "403", "404", "422", "429"} <= set(method["responses"]), path
            assert set(method["responses"]["404"]["content"]) == {"application/json"}


def test_numbers_of_paths_are_described_with_their_bounds(pictured):
    _, client = pictured
    for path, methods in get(client, "openapi.json")["paths"].items():
        for method in methods.values():
            for each in method.get("parameters", ()):
                if each["in"] == "path" and each["schema"].get("type") == "integer":
                    bounds = each["schema"]["minimum"], each["schema"]["maximum"]
                    assert bounds == (0, 2**31 - 1), (path, each["name"])


def test_methods_that_a_path_does_not_have(pictured):
    _, client = pictured
    for path, methods in (("/api/verdicts", "GET, POST"), ("/api/cases/0", "GET")):
        answer = client.delete(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)
