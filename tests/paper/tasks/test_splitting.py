import pytest

from segtrust.errors import ParameterError
from segtrust.paper.tasks import Sample
from segtrust.paper.tasks.splitting import draw_split, read_split, write_split

WANTED = {"train": 450, "val": 99, "test": 98}


def cases(number: int, **more: str) -> list[Sample]:
    return [Sample(f"{at:04}", **more) for at in range(number)]


def counts(split: dict[str, str]) -> dict[str, int]:
    return {name: list(split.values()).count(name) for name in sorted(set(split.values()))}


def test_published_numbers_are_met():
    assert counts(draw_split(cases(647), WANTED)) == WANTED


def test_other_numbers_keep_the_shares():
    assert counts(draw_split(cases(13), WANTED)) == {"train": 9, "val": 2, "test": 2}


def test_seed_decides_and_order_does_not():
    first = draw_split(cases(100), WANTED, seed=1)
    assert draw_split(cases(100)[::-1], WANTED, seed=1) == first
    assert draw_split(cases(100), WANTED, seed=2) != first


def test_groups_stay_together():
    samples = [Sample(f"{at}", group=f"patient {at // 4}") for at in range(80)]
    split = draw_split(samples, {"train": 2, "test": 1})
    for patient in range(20):
        assert len({split[str(at)] for at in range(4 * patient, 4 * patient + 4)}) == 1
    assert abs(counts(split)["train"] - 53) <= 4


def test_what_the_data_say_is_kept_and_other_sets_are_tested():
    samples = [*cases(10), Sample("known", split="test"), Sample("far", set="OOD")]
    split = draw_split(samples, {"train": 8, "val": 2})
    assert split["known"] == split["OOD/far"] == "test"
    assert counts(split) == {"test": 2, "train": 8, "val": 2}


def test_own_table_is_taken(tmp_path):
    path = tmp_path / "split.csv"
    write_split(path, {"0000": "test", "0001": "train", "0002": ""})
    assert read_split(path, cases(3)) == {"0000": "test", "0001": "train", "0002": ""}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("case,split\n0000,train\n", "none for '0001'"),
        ("case,split\n0000,train\n0001,testing\n", "'testing'"),
        ("name,part\n0000,train\n", "expected the columns case and split"),
        ("", "expected the columns case and split"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, text, said):
    path = tmp_path / "split.csv"
    path.write_text(text)
    with pytest.raises(ParameterError, match=said):
        read_split(path, cases(2))
    with pytest.raises(ParameterError, match="no such file"):
        read_split(tmp_path / "nowhere.csv", cases(2))


def test_test_cases_do_not_depend_on_what_is_done_with_the_others():
    for number in range(5, 400):
        samples = [Sample(str(at)) for at in range(number)]
        two = draw_split(samples, {"train": 960, "test": 240})
        three = draw_split(samples, {"train": 816, "val": 144, "test": 240})
        tested = [{case for case, part in each.items() if part == "test"} for each in (two, three)]
        assert tested[0] == tested[1]


def test_tables_that_cannot_be_meant(tmp_path):
    samples = [Sample("a"), Sample("b")]
    path = tmp_path / "split.csv"
    path.write_text("case,split\na,train\nb,test\na,test\n")
    with pytest.raises(ParameterError, match="each case once, got 2 rows of 'a'"):
        read_split(path, samples)
    path.write_text("case,split\na,train\nb,test\nc,test\n")
    with pytest.raises(ParameterError, match="got 'c', of which there are no files"):
        read_split(path, samples)
    assert read_split(path, samples, is_own=True) == {"a": "train", "b": "test"}
    path.write_text("case,split\na,train\nb,test\n", encoding="utf-16")
    with pytest.raises(ParameterError, match="in UTF-8"):
        read_split(path, samples)
