"""The hub: one network, assembled from a kernel, its services and a gateway.

    client frame -> connection -> Session -> Calls -> the operation of a service
       a message: Entry -> Writes: mods -> trace context -> wakes -> gates -> Log
          -> (group commit) -> result to the sender -> Fanout to every recipient's session

The hub has no sockets: a server or the in-process transport attaches outlets to its gateway. The
gates that check a message, and the listeners of a commit, are ordered lists in this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Self

from hubbub.clock import Clock, SteadyClock, SystemClock
from hubbub.config.models import Limits, NetworkConfig, NetworkFile
from hubbub.errors import StoreUnavailable
from hubbub.logs import log_failure
from hubbub.mods.api import Mod
from hubbub.mods.completions import Completions
from hubbub.mods.pipeline import Pipeline
from hubbub.network.fanout import Fanout
from hubbub.network.gateway import Gateway
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry, Log, LogListeners
from hubbub.network.metrics import HubMetrics
from hubbub.network.mods.failures import Failures
from hubbub.network.mods.runtime import Mods
from hubbub.network.notifications import Notifications
from hubbub.network.ports import Store
from hubbub.network.queries import OpenWakes
from hubbub.network.queues import Queues
from hubbub.network.readiness import Readiness
from hubbub.network.records import Record
from hubbub.network.routing import Router
from hubbub.network.service import Registry, Service
from hubbub.network.services.admin import AdminService
from hubbub.network.services.agent_editor import AgentEditorService
from hubbub.network.services.approvals import ApprovalService
from hubbub.network.services.budgets.budgets import BudgetService
from hubbub.network.services.channels import ChannelService
from hubbub.network.services.launcher import LauncherService
from hubbub.network.services.memory import MemoryService
from hubbub.network.services.messages import MessageService
from hubbub.network.services.participants import ParticipantService
from hubbub.network.services.receipts import ReceiptService
from hubbub.network.services.requests import RequestService
from hubbub.network.services.stops import StopService
from hubbub.network.services.takeovers import TakeoverService
from hubbub.network.services.threads import ThreadService
from hubbub.network.services.trials import TrialService
from hubbub.network.services.turns.ending import Ending
from hubbub.network.services.turns.turns import TurnService
from hubbub.network.state import NetworkState
from hubbub.network.stored import StoreState
from hubbub.network.writes import Writes

__all__ = ["Hub", "Services"]


class Hub:
    """One network, as an async context manager: it runs from enter to exit.

    `file` is the network's config (the hub ignores its models and the agents' prompts). The hub
    opens and closes `store`. Entering raises what `Store.open` raises.
    """

    kernel: Kernel
    services: Services
    gateway: Gateway
    readiness: Readiness

    def __init__(
        self,
        file: NetworkFile,
        store: Store,
        *,
        mods: Sequence[Mod] = (),
        clock: Clock | None = None,
    ):
        self.file, self.store, self.clock = file, store, clock or SystemClock()
        self._mods = mods
        self._stack = AsyncExitStack()

    @property
    def config(self) -> NetworkConfig:
        return self.file.network

    @property
    def limits(self) -> Limits:
        return self.file.network.limits

    @property
    def draining(self) -> bool:
        """Whether the hub has stopped accepting calls."""
        return self.kernel.draining.is_set()

    # Lifecycle ----------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        stored = await self.store.open()
        self._stack.push_async_callback(self.store.close)
        try:
            await self._start(stored)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def _start(self, stored: StoreState) -> None:
        kernel = self.kernel = self._kernel(stored)
        services = self.services = Services(kernel, self._failures, stored)
        ending, mods = services.ending, services.mods
        registry = services.registry
        self.gateway = Gateway(kernel, registry, mods, ending, services.hooks)
        services.agent_editor.admission = self.gateway.admission
        self.readiness = Readiness(kernel.log, self.clock)
        kernel.writes.gates = (services.requests, mods, services.budgets)
        kernel.log.listeners = self._listeners()
        kernel.fanout.parked = services.approvals.parked
        for service in services:
            self._stack.callback(service.close)
        self._tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._stack.push_async_callback(services.completions.close)
        self._writer = self._tasks.create_task(kernel.log.run(), name="log")
        try:
            await services.budgets.restore()
            await mods.admit()
            await self.gateway.admission.declare()
            await ending.start()
            await services.launcher.start()
            await mods.start()
        except BaseException:
            await mods.stop()
            kernel.log.stop()
            raise
        for service in services:
            service.begin()
        kernel.spawn(self.gateway.snapshots.prepare())
        kernel.spawn(self._restore_queues(tuple(kernel.state.agents), stored.head))

    def _kernel(self, stored: StoreState) -> Kernel:
        steady, metrics, draining = SteadyClock(self.clock), HubMetrics(), asyncio.Event()
        state, self._failures = self._restored(stored, steady), Failures()
        pipeline = Pipeline(self._mods, self._failures.add)
        network_log = Log(self.store, state.threads, self.clock, metrics)
        network_log.head = stored.head
        metrics.waiting = lambda: network_log.waiting
        queues = Queues(state.agents)
        router, fanout = Router(state, self.config), Fanout(state, queues, metrics)
        kernel = self._failures.kernel = Kernel(
            file=self.file,
            clock=self.clock,
            steady=steady,
            store=self.store,
            state=state,
            queues=queues,
            log=network_log,
            router=router,
            pipeline=pipeline,
            writes=Writes(self.store, network_log, state, router, pipeline, metrics, self._spawn),
            fanout=fanout,
            notifications=Notifications(state, fanout, pipeline, self.clock),
            metrics=metrics,
            draining=draining,
            spawn=self._spawn,
        )
        return kernel

    def _restored(self, stored: StoreState, steady: SteadyClock) -> NetworkState:
        try:
            return NetworkState(stored, steady)
        except (ValueError, TypeError, KeyError) as error:
            raise StoreUnavailable(
                f"{self.config.store} has a record that cannot be read ({error}): restore a backup "
                "(`hubbub network restore`), or configure another file as the store"
            ) from error

    def _listeners(self) -> LogListeners:
        kernel, services = self.kernel, self.services
        return LogListeners(
            recorded=(kernel.queues.recorded, services.mods.recorded),
            committed=(
                # First, as it can suppress wakes before they are pushed.
                (kernel.state.stops.standing, services.ending.committed),
                (True, kernel.writes.committed),
                (True, kernel.fanout.committed),
                (True, kernel.writes.causes.committed),
                (True, services.budgets.committed),
                (services.requests.waits.held, services.requests.committed),
                (services.turns.questions, services.turns.committed),
                ((), self.gateway.cursors.committed),
                (True, self.readiness.committed),
                (kernel.state.takeovers.standing, services.takeovers.committed),
                (kernel.state.down, services.launcher.committed),
            ),
            refused=(self.readiness.refused, kernel.writes.refused),
            repeated=(kernel.writes.repeated,),
        )

    def listen(
        self,
        committed: Callable[[Sequence[Entry]], None],
        recorded: Callable[[Sequence[Record]], None] | None = None,
    ) -> None:
        """Call `committed` with the entries of each commit, in log order, after all other
        listeners; before that, call `recorded` with its records, if any."""
        listeners = self.kernel.log.listeners
        also = () if recorded is None else (recorded,)
        self.kernel.log.listeners = listeners._replace(
            recorded=(*listeners.recorded, *also),
            committed=(*listeners.committed, (True, committed)),
        )

    async def __aexit__(self, *exc: object) -> None:
        try:
            await self.drain()
        finally:
            self.kernel.log.stop()
            await self._stack.aclose()

    async def drain(self, after_s: float = 1.0) -> None:
        """Accept no more calls, finish those accepted, and ask all clients to reconnect."""
        self.kernel.draining.set()
        self.gateway.say_goodbye(after_s)
        self.gateway.cursors.flush()
        self.services.budgets.flush()
        if not self._writer.done():
            await self.kernel.log.settle()
        await self.services.mods.stop()
        self.kernel.notifications.stop()
        for service in self.services:
            service.close()
        self.gateway.close()

    def look(self) -> None:
        """Let the services check the time now, for clocks that are moved by hand."""
        for service in self.services:
            service.look()

    async def _restore_queues(self, agents: Sequence[str], head: int) -> None:
        """Restore the agents' pending wakes from the log, in the background as there can be
        many."""
        for agent in agents:
            await self.kernel.until_readable(partial(self._restore_queue, agent, head))
        await self.kernel.until_readable(self.services.requests.restore)

    async def _restore_queue(self, agent: str, head: int) -> None:
        self.kernel.queues.restore(agent, await self.store.read(OpenWakes(agent, head)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.create_task(log_failure(work))


class Services:
    """The services of a hub, in listening order. Each gets the kernel and the services it uses."""

    def __init__(self, kernel: Kernel, failures: Failures, stored: StoreState):
        registry, ending, completions = Registry(), Ending(kernel), Completions()
        stops, approvals = StopService(kernel, ending), ApprovalService(kernel, ending, stored)
        requests, budgets = RequestService(kernel, approvals, stored), BudgetService(kernel)
        ending.listeners = (
            budgets.turns.turns_ended,
            approvals.turns_ended,
            requests.turns_ended,
        )
        approvals.listeners = (requests.approvals_changed,)
        self.registry, self.ending, self.completions = registry, ending, completions
        self.stops = stops
        self.takeovers = TakeoverService(kernel, ending)
        self.mods = Mods(kernel, failures, registry, approvals.parked)
        self.launcher = LauncherService(kernel, ending)
        self.agent_editor = AgentEditorService(
            kernel, registry, self.launcher, budgets, completions
        )
        self.approvals, self.requests, self.budgets = approvals, requests, budgets
        self.turns = TurnService(
            kernel, ending, budgets=budgets, stops=stops, approvals=approvals, requests=requests
        )
        ending.listeners = (*ending.listeners, self.turns.turns_ended)
        self.trials = TrialService(kernel, self.turns)
        self.messages = MessageService(kernel)
        self.participants = ParticipantService(kernel, registry)
        self.threads = ThreadService(kernel)
        self.channels = ChannelService(kernel)
        self.receipts = ReceiptService(kernel, self.turns, requests, self.launcher)
        self.memory = MemoryService(kernel)
        self.admin = AdminService(kernel, self.mods, registry, completions)
        for service in self:
            registry.add(service.operations())

    def __iter__(self) -> Iterator[Service]:
        return (each for each in vars(self).values() if isinstance(each, Service))

    @property
    def hooks(self) -> Sequence[Service]:
        """The services that follow joins, departures and absences, in order."""
        hooks = ("joined", "left", "absent")
        return [
            each
            for each in self
            if any(getattr(type(each), name) is not getattr(Service, name) for name in hooks)
        ]
