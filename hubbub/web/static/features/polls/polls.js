// `#/polls`: all polls; `#/polls/<thread>`: those of one thread.
import { html, useState } from "../../core/ui.js";
import { Empty, Loading } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { useWatched } from "../../parts/watched.js";
import { Poll } from "./poll.js";
import { words } from "./texts.js";

const PAGE = 20;
const MOST = 200; // the hub lists no more at once

export function Polls({ app, args: [thread = null], news, create }) {
  const [most, setMost] = useState(PAGE);
  const of = thread ? { thread } : {};
  const read = async () => {
    const [open, closed] = await Promise.all(
      ["open", "closed"].map((state) => app.client.call("list_polls", { ...of, state, limit: most })),
    );
    return { open, closed };
  };
  const { value, error } = useWatched(read, {
    key: `${thread} ${most}`, signs: () => news.signs(), goesOn: () => false,
  });
  const isEmpty = value && !value.open.polls.length && !value.closed.polls.length;
  const title = thread ? words.inThread(app.state.titleOf(thread)) : words.title;
  return html`
    <header class="title"><h1 class="cut" tabindex="-1" data-focus>${title}</h1>
      <div class="tools">
        ${thread && html`<a class="button plain" href=${app.router.href("polls")}>${words.all}</a>`}
        ${app.client.may("create_poll") && html`<button type="button" class="primary" onClick=${() => create({ thread })}>
          <${Icon} name="plus" size=${16} />${words.create}</button>`}
      </div>
    </header>
    <div class="page polls">
      <${Loading} found=${{ value, error }} />
      ${isEmpty && html`<${Empty} icon="poll" title=${words.empty.title} text=${words.empty.text} />`}
      ${value && ["open", "closed"].map((state) => html`<${Group} key=${state} app=${app} news=${news}
        title=${words.states[state]} polls=${value[state].polls} where=${thread === null} />`)}
      ${value && (value.open.more || value.closed.more) && most < MOST &&
      html`<button type="button" class="plain" onClick=${() => setMost(Math.min(MOST, most + PAGE))}>${words.older}</button>`}
    </div>
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
