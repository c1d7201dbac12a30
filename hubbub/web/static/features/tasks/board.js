// `#/tasks/<thread>`: a thread's tasks in columns by state; `#/tasks/<thread>/b3`: those of one board.
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { Loading } from "../../parts/empty.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { Icon } from "../../parts/icon.js";
import { useWatched } from "../../parts/watched.js";
import { Card, DRAGGED } from "./card.js";
import { begin } from "./actions.js";
import { TaskForm } from "./form.js";
import { actionTo } from "./rules.js";
import { words } from "./texts.js";

const STATES = ["open", "blocked", "claimed", "done", "cancelled"];
const PAGE = 30;
const MOST = 200; // the hub's limit per list

export function Board({ app, news, thread, board }) {
  const [most, setMost] = useState(PAGE);
  const [making, setMaking] = useState(null); // "task" or "board"
  const about = board ? { board } : { thread };
  const { value, error } = useWatched(() => columns(app.client, thread, about, most), {
    key: `${thread} ${board} ${most}`, signs: () => news.signs(),
  });
  return html`
    <${Head} app=${app} thread=${thread} make=${setMaking} />
    <div class="page tasks">
      ${value && html`<${Tabs} app=${app} thread=${thread} board=${board} boards=${value.boards} />`}
      <${Loading} found=${{ value, error }} />
      ${value && html`<${Columns} app=${app} columns=${value.columns} more=${() => setMost(MOST)}
        isAll=${most === MOST} names=${board || value.boards.length < 2 ? null : value.boards} />`}
    </div>
    ${making === "task" && html`<${TaskForm} app=${app} thread=${thread} about=${about} close=${() => setMaking(null)} />`}
    ${making === "board" && html`<${CreateBoard} app=${app} thread=${thread} close=${() => setMaking(null)} />`}
  `;
}

function Head({ app, thread, make }) {
  return html`<header class="title">
    <h1 class="cut" tabindex="-1" data-focus>${words.inThread(app.state.titleOf(thread))}</h1>
    <div class="tools">
      <a class="button plain" href=${app.router.href("tasks")}>${words.all}</a>
      ${app.client.may("create_board") && html`<button type="button" class="for-board" title=${words.createBoard}
        onClick=${() => make("board")}><${Icon} name="board" size=${16} />${words.createBoard}</button>`}
      ${app.client.may("create_task") && html`<button type="button" class="primary" onClick=${() => make("task")}>
        <${Icon} name="plus" size=${16} />${words.create}</button>`}
    </div>
  </header>`;
}

/** If a thread has named boards. */
function Tabs({ app, thread, board, boards }) {
  if (!boards.some(({ name }) => name)) return null;
  const tab = (id, title) => html`<a key=${id} href=${app.router.href("tasks", id ? [thread, id] : [thread])}
    aria-current=${id === board ? "page" : null}>${title}</a>`;
  return html`<nav class="choice" aria-label=${words.boards}>
    ${tab(null, words.allOfThread)}
    ${boards.map(({ id, name }) => tab(id, visible(words.board(name))))}
  </nav>`;
}

function Columns({ app, columns, more, isAll, names }) {
  const shown = columns.filter(({ state, tasks }) => tasks.length || !["blocked", "cancelled"].includes(state));
  const boardOf = (task) => names?.find(({ id }) => id === task.board)?.name ?? "";
  const drop = (event, state) => {
    const id = event.dataTransfer.getData(DRAGGED);
    const task = columns.flatMap(({ tasks }) => tasks).find((each) => each.id === id);
    if (!task || task.state === state) return;
    event.preventDefault();
    const action = actionTo(task, state, app.state.me.peek(), app.state.owner.peek());
    if (!action) app.say(words.cannot(visible(task.title), words.states[state]));
    else begin(app, task, action).catch((error) => app.say(error.message));
  };
  return html`<div class="columns" onKeyDown=${moved}>
    ${shown.map(({ state, tasks, more: hasMore }) => html`<section key=${state} class="column" data-state=${state}
      aria-label=${words.states[state]} onDragOver=${over} onDrop=${(event) => drop(event, state)}>
      <div class="section"><h2>${words.states[state]}</h2>
        <span class="badge">${tasks.length}${hasMore ? "+" : ""}</span></div>
      ${!tasks.length && html`<p class="quiet small">${words.nothing}</p>`}
      <ul>${tasks.map((task) => html`<li key=${task.id}><${Card} app=${app} task=${task} board=${boardOf(task)}
        draggable /></li>`)}</ul>
      ${hasMore && !isAll && html`<button type="button" class="plain small" onClick=${more}>${words.older}</button>`}
    </section>`)}
  </div>`;
}

/** Only tasks can be dropped. */
function over(event) {
  if (event.dataTransfer.types.includes(DRAGGED)) event.preventDefault();
}

/** Arrow keys move between cards. */
function moved(event) {
  if (!event.target.matches(".task") || event.ctrlKey || event.altKey || event.metaKey) return;
  const all = [...event.currentTarget.querySelectorAll(".column")].map((each) => [...each.querySelectorAll(".task")]);
  const x = all.findIndex((cards) => cards.includes(event.target));
  const y = all[x].indexOf(event.target);
  const beside = (step) => {
    for (let at = x + step; at >= 0 && at < all.length; at += step) {
      if (all[at].length) return all[at][Math.min(y, all[at].length - 1)];
    }
    return null;
  };
  const next = {
    ArrowDown: () => all[x][y + 1], ArrowUp: () => all[x][y - 1],
    ArrowRight: () => beside(1), ArrowLeft: () => beside(-1),
  }[event.key]?.();
  if (!next) return;
  event.preventDefault();
  next.focus();
}

async function columns(client, thread, about, most) {
  const of = async (state) => ({ state, ...(await client.call("list_tasks", { ...about, state, limit: most })) });
  const [{ boards }, ...found] = await Promise.all([
    client.call("list_boards", { thread, limit: 200 }), ...STATES.map(of),
  ]);
  return { boards, columns: found };
}

// Creates a board besides the thread's default one.

function CreateBoard({ app, thread, close }) {
  const [name, setName] = useState("");
  const create = async () => {
    const made = await app.client.write("create_board", { thread, name: name.trim() });
    return () => app.router.go("tasks", [thread, made.id]);
  };
  return html`<${FormDialog} title=${words.createBoard} label=${words.add} ready=${name.trim()} submit=${create} close=${close}>
    <label class="field">${words.boardName}
      <input name="name" maxlength="64" required autocomplete="off" data-focus value=${name}
        onInput=${(event) => setName(event.target.value)} /></label>
  <//>`;
}
