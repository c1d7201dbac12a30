"""Tasks and polls: what is asked, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from hubbub.cli.chat.lines import Note
from hubbub.cli.chat.text import one_line
from hubbub.cli.control.words import moment
from hubbub.cli.output import counted
from hubbub.cli.workplace import works
from hubbub.cli.workplace.told import Told, done, table, text_lines
from hubbub.errors import UserError
from hubbub.mods.polls.schemas import Poll, Polls, PollSummary, Voted
from hubbub.mods.tasks.schemas import Boards, BoardText, Task, TaskDetails, Tasks

if TYPE_CHECKING:
    from hubbub.cli.control.asker import Asker
    from hubbub.cli.control.told import Shown

__all__ = ["AtBoards", "AtPolls", "poll_notes", "task_details", "task_notes", "task_words"]

LISTED = 30
"""Things in a list."""


class AtBoards:
    """Shows tasks, and what is done with them."""

    def __init__(self, asker: Asker):
        self._asker = asker

    async def do(self, work: works.OfBoards) -> Told:
        """Do it. Raises `UserError`, `OperationError`."""
        match work:
            case works.Tasks():
                return await self._list(work)
            case works.Board(board):
                found = await self._asker.ask(
                    BoardText, "board_as_markdown", board=board or await self._board()
                )
                cut = [Note("there are more tasks")] if found.cut else []
                return Told([*text_lines(found.text), *cut])
            case works.Task(id):
                details = await self._asker.ask(TaskDetails, "read_task", task=id)
                self._seen(details.task)
                return Told(task_details(details))
            case works.CreateTask(title):
                thread = self._asker.known.current
                return await self._change("create_task", title=title, thread=thread)
            case works.Claim(id):
                return await self._change("claim_task", task=id)
            case works.Finish(id, result):
                return await self._change("finish_task", task=id, result=result)
            case _:
                assert_never(work)

    async def _list(self, work: works.Tasks) -> Told:
        found = await self._asker.ask(
            Tasks,
            "list_tasks",
            owner=self._asker.known.me if work.mine else None,
            ready=work.ready or None,
            limit=LISTED,
        )
        self._seen(*found.tasks)
        return Told(task_notes(found, self._asker.shown))

    async def _change(self, operation: str, **args: str) -> Told:
        task = await self._asker.ask(Task, operation, **args)
        self._seen(task)
        return done(task_words(task))

    async def _board(self) -> str:
        """The board of the open thread. Raises `UserError`."""
        thread = self._asker.known.current
        found = (await self._asker.ask(Boards, "list_boards", thread=thread)).boards
        if len(found) == 1:
            return found[0].id
        self._asker.known.seen.note((board.id, board.name) for board in found)
        names = ", ".join(f"{board.id} {one_line(board.name)}".rstrip() for board in found)
        raise UserError(
            f"name one of the boards: {names}"
            if found
            else "this thread has no board; /todo begins one"
        )

    def _seen(self, *tasks: Task) -> None:
        self._asker.known.seen.note((task.id, task.title) for task in tasks)


def task_notes(found: Tasks, shown: Shown) -> list[Note]:
    """A table of tasks."""
    if not found.tasks:
        return [Note("no tasks")]
    rows = (
        (
            task.id,
            "overdue" if task.overdue else task.state,
            task.owner or "",
            "" if task.due is None else moment(task.due),
            shown(task.thread_id),
            task.title,
        )
        for task in found.tasks
    )
    more = [Note("there are earlier ones")] if found.more else []
    return [*table(("TASK", "STATE", "OWNER", "DUE", "THREAD", ""), rows), *more]


def task_words(task: Task) -> str:
    """`t3 claimed by bot: Write (high, waits for t1)`."""
    notes: list[str] = [task.priority] if task.priority != "normal" else []
    notes += [f"due {moment(task.due)}"] if task.due else []
    notes += [f"waits for {', '.join(task.waits_for)}"] if task.waits_for else []
    notes += [f"request {task.request}"] if task.request else []
    notes += task.labels
    by = f" by {task.owner}" if task.owner else ""
    more = f" ({', '.join(notes)})" if notes else ""
    return one_line(f"{task.id} {task.state}{by}: {task.title}{more}")


def task_details(found: TaskDetails) -> list[Note]:
    """A task, what it is about, its result, and who has done what with it."""
    notes = [Note(task_words(found.task), "plain")]
    for title, text in (("description", found.description), ("result", found.result)):
        if text:
            notes += [Note(f"{title}:"), *text_lines(text)]
    if found.history:
        rows = ((moment(each.at), each.by, each.what, each.note) for each in found.history)
        notes += table(("WHEN", "WHO", "WHAT", ""), rows)
    return notes


class AtPolls:
    """Asks, votes, and shows how polls stand."""

    def __init__(self, asker: Asker):
        self._asker = asker

    async def do(self, work: works.OfPolls) -> Told:
        """Do it. Raises `OperationError`."""
        match work:
            case works.CreatePoll(question, options):
                thread = self._asker.known.current
                made = await self._asker.ask(
                    PollSummary, "create_poll", thread=thread, question=question, options=options
                )
                self._asker.known.seen.note([(made.id, made.question)])
                self._asker.known.seen.offer(made.id, options)
                return done(f"{made.id} is asked; /polls {made.id} shows how it stands")
            case works.Vote(poll, options):
                if options:
                    await self._asker.ask(Voted, "vote", poll=poll, options=options)
                else:
                    await self._asker.ask(Voted, "retract_vote", poll=poll)
                return await self._about("read_poll", poll=poll)
            case works.Polls():
                found = await self._asker.ask(Polls, "list_polls", limit=LISTED)
                self._asker.known.seen.note((poll.id, poll.question) for poll in found.polls)
                return Told(_listed(found, self._asker.shown))
            case works.Poll(poll):
                return await self._about("read_poll", poll=poll)
            case works.ClosePoll(poll):
                return await self._about("close_poll", poll=poll)
            case _:
                assert_never(work)

    async def _about(self, operation: str, **args: object) -> Told:
        """Do something with a poll, and show how it stands then."""
        found, seen = await self._asker.ask(Poll, operation, **args), self._asker.known.seen
        seen.note([(found.poll.id, found.poll.question)])
        seen.offer(found.poll.id, tuple(option.text for option in found.options))
        return Told(poll_notes(found))


def _listed(found: Polls, shown: Shown) -> list[Note]:
    if not found.polls:
        return [Note("no polls")]
    rows = (
        (poll.id, poll.state, str(poll.voters), _until(poll), shown(poll.thread_id), poll.question)
        for poll in found.polls
    )
    more = [Note("there are earlier ones")] if found.more else []
    return [*table(("POLL", "STATE", "VOTERS", "UNTIL", "THREAD", ""), rows), *more]


def _until(poll: PollSummary) -> str:
    end = poll.closed_at or poll.deadline
    return "" if end is None else moment(end)


def poll_notes(found: Poll) -> list[Note]:
    """A poll, its options, one's own marked, and the outcome."""
    poll = found.poll
    voted = counted(poll.voters, "vote", "votes")
    secret = ", secret" if poll.secret else ""
    several = ", several options" if poll.multiple else ""
    until = f", until {_until(poll)}" if poll.deadline and not poll.closed_at else ""
    head = f"{poll.id} {poll.state}, {voted}{secret}{several}{until}: {one_line(poll.question)}"
    rows = (
        (
            "*" if option.number in found.mine else "",
            str(option.number),
            option.text,
            "" if option.votes is None else str(option.votes),
            ", ".join(option.voters),
        )
        for option in found.options
    )
    notes = [Note(head), *table(("", "", "OPTION", "VOTES", ""), rows)]
    if found.outcome is not None:
        winners = f": {one_line(', '.join(found.winners))}" if found.winners else ""
        notes.append(Note(f"{found.outcome.replace('_', ' ')}{winners}", "plain"))
    elif not found.mine:
        notes.append(Note(f"/vote {poll.id} <number> votes"))
    return notes
