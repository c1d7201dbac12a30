"""All operations of the core as they are declared: what can be asked of a hub without mods."""

from __future__ import annotations

from hubbub.mods.operation import Operation
from hubbub.network.service import Service
from hubbub.network.services.admin import AdminService
from hubbub.network.services.agent_editor import AgentEditorService
from hubbub.network.services.approvals.approvals import ApprovalService
from hubbub.network.services.branches import BranchService
from hubbub.network.services.budgets.budgets import BudgetService
from hubbub.network.services.channels import ChannelService
from hubbub.network.services.interactions import InteractionService
from hubbub.network.services.launcher import LauncherService
from hubbub.network.services.memory import MemoryService
from hubbub.network.services.messages import MessageService
from hubbub.network.services.models import ModelService
from hubbub.network.services.mods import ModService
from hubbub.network.services.participants import ParticipantService
from hubbub.network.services.read_markers import ReadMarkerService
from hubbub.network.services.receipts import ReceiptService
from hubbub.network.services.requests.requests import RequestService
from hubbub.network.services.stops.stops import StopService
from hubbub.network.services.takeovers import TakeoverService
from hubbub.network.services.threads import ThreadService
from hubbub.network.services.trials import TrialService
from hubbub.network.services.turns.turns import TurnService

__all__ = ["CORE_OPERATIONS"]

_SERVICES: tuple[type[Service], ...] = (
    MessageService,
    ParticipantService,
    ThreadService,
    ReadMarkerService,
    MemoryService,
    ChannelService,
    TurnService,
    TrialService,
    BranchService,
    ReceiptService,
    InteractionService,
    BudgetService,
    ApprovalService,
    RequestService,
    StopService,
    TakeoverService,
    AdminService,
    LauncherService,
    AgentEditorService,
    ModelService,
    ModService,
)

CORE_OPERATIONS: tuple[Operation, ...] = tuple(
    operation for service in _SERVICES for operation in service.declared()
)
"""The hub runs them bound to its services; docs and checks read them here."""
