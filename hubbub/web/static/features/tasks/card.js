// A task on a board, with its next possible actions.
import { visible } from "../../core/markdown.js";
import { fullTime } from "../../core/time.js";
import { html } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Icon } from "../../parts/icon.js";
import { Actions } from "./actions.js";
import { words } from "./texts.js";

/** The drag-and-drop type: a task's id. */
export const DRAGGED = "application/x-task";

const short = new Intl.DateTimeFormat(undefined, {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit",
});

/** `where`: whether to show the thread; `board`: the name of the task's board, if it is to be shown. */
export function Card({ app, task, where = false, board = "", draggable = false }) {
  const { id, title, owner, labels, waits_for: waits, thread_id: thread, state } = task;
  const open = () => app.open("task", id);
  const key = (event) => {
    if (event.key !== "Enter" || event.target !== event.currentTarget) return;
    event.preventDefault();
    open();
  };
  return html`<article class="task" tabindex="0" data-task=${id} data-state=${state} aria-label=${visible(title)}
    onKeyDown=${key} draggable=${draggable}
    onDragStart=${(event) => event.dataTransfer.setData(DRAGGED, id)}>
    <button type="button" class="task-title" dir="auto" onClick=${open}>${visible(title)}</button>
    <div class="task-facts">
      <span class="quiet small">${id}</span>
      <${Marks} task=${task} />
      ${board && html`<span class="chip">${visible(board)}</span>`}
      ${where && html`<span class="quiet small">${app.state.titleOf(thread)}</span>`}
      ${labels.map((label) => html`<span key=${label} class="chip">${visible(label)}</span>`)}
      ${waits.length > 0 && html`<span class="chip warn"><${Icon} name="clock" size=${12} />
        ${words.waitsFor} ${waits.join(", ")}</span>`}
    </div>
    <div class="task-foot">
      ${owner && html`<span class="task-owner" title=${words.owner(owner)}>
        <${Avatar} app=${app} id=${owner} size=${1.25} />${owner}</span>`}
      <${Actions} app=${app} task=${task} />
    </div>
  </article>`;
}

/** Priority and due date. */
export function Marks({ task: { priority, due, overdue } }) {
  const mood = { urgent: "danger", high: "warn" }[priority] ?? "";
  return html`
    ${priority !== "normal" && html`<span class=${`chip ${mood}`}>${words.priorities[priority]}</span>`}
    ${due && html`<span class=${overdue ? "chip danger" : "chip"}>
      <span>${overdue ? words.overdue : words.due}${" "}
        <time datetime=${due} title=${fullTime(due)}>${short.format(new Date(due))}</time></span></span>`}
  `;
}
