"""Short representations and HTML tables."""

from dataclasses import dataclass

from segtrust._display import Displayed, format_value, html_table, short_repr


@dataclass(frozen=True, repr=False)
class Shown(Displayed):
    risk: float
    name: str

    def _shown(self):
        return {"full_risk": self.risk, "name": self.name}

    def _caption(self):
        return f"Result of {self.name}"


def test_text_is_escaped_everywhere():
    html = html_table("<b>", [("<i>", "a & b")], header=["<u>"])
    assert "<b>" not in html
    assert "<i>" not in html
    assert "<u>" not in html
    assert "a &amp; b" in html


def test_long_tables_state_how_many_rows_they_have():
    html = html_table("", [(i, i) for i in range(50)], most_rows=3)
    assert html.count("<tr>") == 3
    assert "3 of 50 rows shown" in html


def test_values_are_short():
    assert format_value([0.5, None]) == "[0.5, None]"
    assert len(format_value("x" * 1000)) == 60
    assert format_value(float("nan")) == "nan"


def test_a_dataclass_shows_itself_in_one_line_and_as_a_table():
    shown = Shown(1 / 3, "it's <me>")
    assert repr(shown) == """Shown(full_risk=0.3333, name="it's <me>")"""
    assert short_repr(shown, {}) == "Shown()"
    assert "<p>Result of it&#x27;s &lt;me&gt;</p>" in shown._repr_html_()
    assert "<th>full risk</th><td>0.3333</td>" in shown._repr_html_()
