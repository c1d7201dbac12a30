// `#/tasks`: the reader's tasks, and all boards.
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { Listing } from "../../parts/listing.js";
import { useWatched } from "../../parts/watched.js";
import { Card } from "./card.js";
import { words } from "./texts.js";

const PAGE = 50;
const MOST = 200; // the hub's limit per list

export function Boards({ app, news }) {
  const [most, setMost] = useState(PAGE);
  const found = useWatched(() => overview(app, most), { key: `${most}`, signs: () => news.signs() });
  const { boards = [], mine = [], more } = found.value ?? {};
  return html`
    <${Listing} app=${app} name="tasks" icon="board" words=${words} found=${found} isEmpty=${found.value && !boards.length}
      more=${more && most < MOST && (() => setMost(MOST))}>
      ${mine.length > 0 && html`<section aria-label=${words.mine}>
        <div class="section"><h2>${words.mine}</h2></div>
        <ul class="my-tasks">${mine.map(
          (task) => html`<li key=${task.id}><${Card} app=${app} task=${task} where /></li>`,
        )}</ul></section>`}
      ${boards.length > 0 && html`<section aria-label=${words.boards}>
        <div class="section"><h2>${words.boards}</h2></div>
        <ul class="boards">${boards.map((board) => html`<${Item} key=${board.id} app=${app} board=${board} />`)}
        </ul></section>`}
    <//>
  `;
}

function Item({ app, board: { id, name, thread_id: thread, active, over } }) {
  return html`<li><a class="row-item" href=${app.router.href("tasks", name ? [thread, id] : [thread])}>
    <${Icon} name="board" size=${18} />
    <span class="name" dir="auto">${name ? visible(name) : app.state.titleOf(thread)}</span>
    <span class="quiet small about">${name && `${app.state.titleOf(thread)} · `}${words.counts(active, over)}</span>
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
