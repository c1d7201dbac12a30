from __future__ import annotations

import asyncio

import pytest

from hubbub.errors import OperationError
from hubbub.mods.operation import Commit
from hubbub.mods.queues import KeyedQueues
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.operations import Done


async def test_one_at_a_time_for_each_key_in_the_order_of_arrival() -> None:
    queues, order = KeyedQueues(), list[str]()

    async def change(document: int, name: str) -> None:
        await queues.enter(document)
        order.append(f"{name} begins")
        await asyncio.sleep(0)
        order.append(f"{name} ends")
        queues.leave(document)

    await asyncio.gather(change(1, "a"), change(1, "b"), change(2, "c"))
    alone = [each for each in order if not each.startswith("c")]
    assert alone == ["a begins", "a ends", "b begins", "b ends"]
    assert order.index("c begins") < order.index("a ends")
    assert not len(queues)


async def test_who_gives_up_waiting_holds_nobody_up_and_is_forgotten() -> None:
    queues = KeyedQueues()
    await queues.enter(1)
    impatient = asyncio.create_task(queues.enter(1))
    patient = asyncio.create_task(queues.enter(1))
    await asyncio.sleep(0)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    queues.leave(1)
    await patient
    assert len(queues) == 1
    queues.leave(1)
    assert not len(queues)


async def test_a_change_keeps_its_turn_until_it_is_durable_or_refused() -> None:
    queues = KeyedQueues()

    async def change() -> Commit:
        return Commit((), Done())

    async def refused() -> Commit:
        raise OperationError(ErrorCode.NOT_FOUND, "it is gone")

    commit = await queues.in_turn(1, change)
    assert len(queues) == 1
    assert commit.released is not None
    commit.released()
    assert not len(queues)
    with pytest.raises(OperationError):
        await queues.in_turn(1, refused)
    assert not len(queues)
