// `#/tasks`: what the reader does, and all boards.
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { Empty, Loading } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { useWatched } from "../../parts/watched.js";
import { Card } from "./card.js";
import { words } from "./texts.js";

const PAGE = 50;
const MOST = 200; // the hub lists no more at once

export function Boards({ app, news }) {
  const [most, setMost] = useState(PAGE);
  const { value, error } = useWatched(() => overview(app, most), {
    key: `${most}`, signs: () => news.signs(), goesOn: () => false,
  });
  return html`
    <header class="title"><h1 class="cut" tabindex="-1" data-focus>${words.title}</h1></header>
    <div class="page tasks">
      <${Loading} found=${{ value, error }} />
      ${value?.mine.length > 0 && html`<section aria-label=${words.mine}>
        <div class="section"><h2>${words.mine}</h2></div>
        <ul class="my-tasks">${value.mine.map(
          (task) => html`<li key=${task.id}><${Card} app=${app} task=${task} where /></li>`,
        )}</ul></section>`}
      ${value && !value.boards.length && html`<${Empty} icon="board" title=${words.empty.title} text=${words.empty.text} />`}
      ${value?.boards.length > 0 && html`<section aria-label=${words.boards}>
        <div class="section"><h2>${words.boards}</h2></div>
        <ul class="boards">${value.boards.map((board) => html`<${Item} key=${board.id} app=${app} board=${board} />`)}
        </ul></section>`}
      ${value?.more && most < MOST &&
      html`<button type="button" class="plain" onClick=${() => setMost(MOST)}>${words.older}</button>`}
    </div>
  `;
}

function Item({ app, board: { id, name, thread_id: thread, active, over } }) {
  return html`<li><a class="board-item" href=${app.router.href("tasks", name ? [thread, id] : [thread])}>
    <${Icon} name="board" size=${18} />
    <span class="name" dir="auto">${name ? visible(name) : app.state.titleOf(thread)}</span>
    <span class="quiet small">${name && `${app.state.titleOf(thread)} · `}${words.counts(active, over)}</span>
  </a></li>`;
}

async function overview(app, most) {
  const owner = app.state.me.peek();
  const held = (state) => app.client.call("list_tasks", { owner, state, limit: PAGE });
  const [{ boards, more }, claimed, blocked] = await Promise.all([
    app.client.call("list_boards", { limit: most }), held("claimed"), held("blocked"),
  ]);
  return { boards, more, mine: [...claimed.tasks, ...blocked.tasks] };
}
