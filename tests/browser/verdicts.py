"""What tests of verdicts share: begin as a reviewer, read what was said, start a desk anew."""

from contextlib import ExitStack, contextmanager

from segtrust.io import Table, write_table
from tests.browser.pages import sign_in
from tests.review import desks

GONE = "Failed to load|ERR_CONNECTION"
"""What a browser complains of while no desk is there."""


def entries(client):
    return client.get("/api/verdicts").json()


def said(client):
    return [(each["case"], each["verdict"]) for each in entries(client)]


def begin(visit, client, **how):
    page = visit(client, **how)
    page.get_by_test_id("row").first.wait_for()
    sign_in(page, "Ann")
    return page


def client_order(client):
    return [row["case"] for row in client.get("/api/cases").json()["rows"]]


class Restarting:
    """A desk that is started anew at the same address, on its table in another order."""

    def __init__(self, folder, static, count):
        self.folder, self.static, self.served = folder, static, ExitStack()
        self.rows = [{**row, "set": "", "group": ""} for row in desks.rows_of(count, ties=False)]
        self._start(port=0)

    def restart(self):
        self.served.close()
        self.rows = self.rows[::-1]
        self._start(port=self.client.base_url.port)

    def _start(self, port):
        write_table(self.folder / "scores.csv", Table.of(self.rows))
        desk = desks.desk_on(self.folder, static=self.static, port=port)
        _, self.client = self.served.enter_context(desk)


@contextmanager
def restarting(folder, static, count):
    desk = Restarting(folder, static, count)
    with desk.served:
        yield desk
