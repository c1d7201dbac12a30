"""The page's modules without the page: js/*.test.js, described in js/harness.js."""

from __future__ import annotations

from tests.browser.support.desk import Seats
from tests.browser.support.modules import failures


async def test_the_javascript_tests_of_the_pages_modules_pass(seats: Seats) -> None:
    seat = await seats.take(new=True)
    count, failed = await failures(seat.page)
    assert not failed, f"{len(failed)} of {count} failed:\n\n" + "\n\n".join(failed)
    seat.complaints.check()
    await seats.give_back(seat, again=False)
