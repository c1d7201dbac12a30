// `#/polls`: all polls; `#/polls/<thread>`: those of one thread.
import { html, useState } from "../../core/ui.js";
import { Listing } from "../../parts/listing.js";
import { useWatched } from "../../parts/watched.js";
import { Poll } from "./poll.js";
import { words } from "./texts.js";

const PAGE = 20;
const MOST = 200; // the hub's limit per list

export function Polls({ app, args: [thread = null], news, create }) {
  const [most, setMost] = useState(PAGE);
  const of = thread ? { thread } : {};
  const read = async () => {
    const [open, closed] = await Promise.all(
      ["open", "closed"].map((state) => app.client.call("list_polls", { ...of, state, limit: most })),
    );
    return { open, closed };
  };
  const found = useWatched(read, { key: `${thread} ${most}`, signs: () => news.signs() });
  const { value } = found;
  const more = value && (value.open.more || value.closed.more) && most < MOST;
  return html`
    <${Listing} app=${app} name="polls" icon="poll" words=${words} thread=${thread} found=${found}
      isEmpty=${value && !value.open.polls.length && !value.closed.polls.length}
      more=${more && (() => setMost(Math.min(MOST, most + PAGE)))}
      create=${app.client.may("create_poll") && (() => create({ thread }))}>
      ${value && ["open", "closed"].map((state) => html`<${Group} key=${state} app=${app} news=${news}
        title=${words.states[state]} polls=${value[state].polls} where=${thread === null} />`)}
    <//>
  `;
}

function Group({ app, news, title, polls, where }) {
  if (!polls.length) return null;
  return html`<section aria-label=${title}><div class="section"><h2>${title}</h2></div>
    <ul>${polls.map(({ id, thread_id: thread }) => html`<li key=${id}>
      ${where && html`<a class="small" href=${app.router.href("polls", [thread])}>
        ${app.state.titleOf(thread)}</a>`}
      <${Poll} app=${app} id=${id} news=${news} /></li>`)}</ul>
  </section>`;
}
