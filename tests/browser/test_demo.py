"""``segtrust review --demo`` as somebody starts it, in the browser."""

import httpx
import pytest

from tests.browser.pages import becomes, cases_on, expect, number_on
from tests.review.test_command import started

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]


def test_the_demo_opens(tmp_path, static, visit):
    with started("--demo", cwd=tmp_path) as (address, _), httpx.Client(base_url=address) as client:
        page = visit(client)
        expect(page.get_by_test_id("title")).to_have_text("demo")
        deferred = client.get("/api/cases", params={"decision": "defer"}).json()
        becomes(page, lambda: cases_on(page)[:5], [row["case"] for row in deferred["rows"][:5]])
        page.keyboard.press("Enter")
        page.locator("[data-testid=viewer][data-state=ready]").wait_for()
        page.get_by_test_id("tab-threshold").click()
        becomes(
            page,
            lambda: page.get_by_test_id("deferred").count() and number_on(page, "deferred"),
            deferred["total"],
        )
        page.get_by_test_id("tab-monitoring").click()
        expect(page.get_by_test_id("drift")).to_contain_text("Drift detected")
        page.context.close()
