from __future__ import annotations

import asyncio

from hubbub.testing.model_gates import Gates


async def test_no_gate_is_an_open_one() -> None:
    await Gates().pass_through(None)


async def test_a_gate_keeps_everybody_until_it_is_released_and_nobody_after() -> None:
    gates = Gates()
    waiting = [asyncio.create_task(gates.pass_through("a")) for _ in range(2)]
    await gates.held("a", 2)
    assert not any(task.done() for task in waiting)
    gates.release("a")
    await asyncio.gather(*waiting)
    await gates.pass_through("a")


async def test_gates_are_told_apart_by_name() -> None:
    gates = Gates()
    waiting = asyncio.create_task(gates.pass_through("a"))
    gates.release("b")
    await gates.pass_through("b")
    await gates.held("a", 1)
    assert not waiting.done()
    gates.release("a")
    await waiting
