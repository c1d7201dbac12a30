from __future__ import annotations

import asyncio

import pytest

from hubbub.errors import OperationError
from hubbub.mods.operation import Commit
from hubbub.mods.repository import KeyedQueues
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.operations import Done


async def test_changes_of_one_key_run_one_at_a_time_in_order_of_arrival() -> None:
    queues, order = KeyedQueues(), list[str]()

    async def change(document: int, name: str) -> None:
        async with queues.turn(document):
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    await asyncio.gather(change(1, "a"), change(1, "b"), change(2, "c"))
    alone = [each for each in order if not each.startswith("c")]
    assert alone == ["a begins", "a ends", "b begins", "b ends"]
    assert order.index("c begins") < order.index("a ends")
    assert not len(queues)


async def test_a_cancelled_waiter_blocks_no_other_and_is_removed() -> None:
    queues, finish = KeyedQueues(), asyncio.Event()

    async def change() -> None:
        async with queues.turn(1):
            await finish.wait()

    _, impatient, patient = changes = [asyncio.create_task(change()) for _ in range(3)]
    await asyncio.sleep(0)
    impatient.cancel()
    assert len(queues) == 1
    finish.set()
    await patient
    assert isinstance((await asyncio.gather(*changes, return_exceptions=True))[1], BaseException)
    assert not len(queues)


async def test_a_change_holds_its_turn_until_it_is_durable_or_refused() -> None:
    queues = KeyedQueues()

    async def change() -> Commit:
        async with queues.turn(1) as hold:
            return hold(Commit((), Done()))

    commit = await change()
    next_one = asyncio.create_task(change())
    await asyncio.sleep(0)
    assert not next_one.done()
    assert commit.released is not None
    commit.released()
    following = await next_one
    assert following.released is not None
    following.released()
    with pytest.raises(OperationError):
        async with queues.turn(1):
            raise OperationError(ErrorCode.NOT_FOUND, "it is gone")
    assert not len(queues)
