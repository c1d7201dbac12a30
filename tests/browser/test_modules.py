"""The page's modules without the page: js/*.test.js; js/harness.js says how they are written."""

from __future__ import annotations

from tests.browser.support.desk import Seats
from tests.browser.support.modules import failures


async def test_the_modules_of_the_page_do_what_their_tests_in_javascript_say(seats: Seats) -> None:
    seat = await seats.take(new=True)
    count, failed = await failures(seat.page)
    assert not failed, f"{len(failed)} of {count} failed:\n\n" + "\n\n".join(failed)
    seat.complaints.check()
    await seats.give_back(seat, again=False)
