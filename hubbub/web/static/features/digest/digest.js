// `#/digest`: new messages by thread, pending approvals and requests, and decisions.
import { visible } from "../../core/markdown.js";
import { html, useEffect, useState } from "../../core/ui.js";
import { Empty } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { Prose } from "../../parts/prose.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

const PAGE = 10;
const MOST = 50;

export function Digest({ app }) {
  const [since, setSince] = useState("last_visit");
  const [limit, setLimit] = useState(PAGE);
  const [times, setTimes] = useState(0);
  const { value, problem } = useDigest(app, { since, limit, times });
  const again = () => setTimes(times + 1);
  return html`
    <header class="title"><h1 class="cut" tabindex="-1" data-focus>${words.title}</h1>
      <div class="tools">
        <button type="button" class="icon" aria-label=${words.refresh} title=${words.refresh} onClick=${again}>
          <${Icon} name="turn" /></button>
        ${value && app.client.may("mark_visit") && html`<${Seen} app=${app} upto=${value.upto} again=${again} />`}
      </div>
    </header>
    <div class="page digest">
      <div class="digest-since"><label>${words.since}
        <select value=${since} onChange=${(event) => setSince(event.target.value)}>
          ${Object.entries(words.sinces).map(([name, title]) => html`<option key=${name} value=${name}>${title}</option>`)}
        </select></label>
        ${value?.since && html`<span class="quiet small"><${Moment} at=${value.since} /></span>`}
      </div>
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      ${!value && !problem && html`<p class="quiet" role="status">${t.loading}</p>`}
      ${value && html`<${Found} app=${app} value=${value} />`}
      ${value?.more && limit < MOST && html`<p class="quiet">${words.more}${" "}
        <button type="button" class="plain small" onClick=${() => setLimit(MOST)}>${words.showMore}</button></p>`}
    </div>
  `;
}

/** The next digest starts after what is shown. */
function Seen({ app, upto, again }) {
  const [busy, setBusy] = useState(false);
  const mark = async () => {
    setBusy(true);
    if (await app.tried(() => app.client.write("mark_visit", { upto }), words.marked)) again();
    setBusy(false);
  };
  return html`<button type="button" class="primary" title=${words.seenHint} disabled=${busy} onClick=${mark}>
    <${Icon} name="check" size=${16} />${words.seen}</button>`;
}

function Found({ app, value: { threads, waiting, decided, since, note } }) {
  const isEmpty = !threads.length && !waiting.length && !decided.length;
  return html`
    ${!since && threads.length > 0 && html`<p class="quiet small">${words.first}</p>`}
    ${note && html`<p class="note info">${note}</p>`}
    ${isEmpty && html`<${Empty} icon="checks" title=${words.none.title} text=${words.none.text} />`}
    ${waiting.length > 0 && html`<section aria-label=${words.waiting}><h2>${words.waiting}</h2><ul>
      ${waiting.map((each) => html`<${Waiting} key=${`${each.kind} ${each.id}`} app=${app} waiting=${each} />`)}</ul></section>`}
    ${decided.length > 0 && html`<section aria-label=${words.decided}><h2>${words.decided}</h2><ul>
      ${decided.map((text, n) => html`<li key=${n} class="digest-line" dir="auto">${visible(text)}</li>`)}</ul></section>`}
    ${threads.length > 0 && html`<section aria-label=${words.threads}><h2>${words.threads}</h2>
      ${threads.map((thread) => html`<${Thread} key=${thread.thread_id} app=${app} thread=${thread} />`)}</section>`}
  `;
}

function Waiting({ app, waiting: { kind, id, thread_id: thread, by, text } }) {
  const message = /^m\d+$/.test(id) ? [id] : [];
  const href = kind === "approval" ? app.router.href("inbox", ["approvals"]) : app.router.href("thread", [thread, ...message]);
  return html`<li class="digest-line"><span class="chip">${words.kinds[kind]}</span>
    <a href=${href} dir="auto">${visible(text)}</a>
    <span class="quiet small">${by && `${by}, `}${nameOf(app, thread)}</span></li>`;
}

function Thread({ app, thread: { thread_id: id, count, counted, speakers, mentions, first, last, summary } }) {
  const title = nameOf(app, id);
  return html`<article class="digest-thread" aria-label=${title}>
    <h3><a href=${app.router.href("thread", [id, first.id])} dir="auto">${title}</a></h3>
    <span class="badge">${words.news(count, counted)}</span>
    ${mentions > 0 && html`<span class="badge mention">${words.mentions(mentions)}</span>`}
    <ul class="speakers quiet small" aria-label=${words.speakers}>
      ${speakers.map((each) => html`<li key=${each.id}>${words.speaker(each.id, each.count)}</li>`)}</ul>
    ${summary && html`<div class="summary"><span class="quiet small">${words.summary}</span>
      <${Prose} app=${app} text=${summary} /></div>`}
    <${Line} app=${app} thread=${id} line=${first} title=${words.begins} />
    ${last.id !== first.id && html`<${Line} app=${app} thread=${id} line=${last} title=${words.ends} />`}
  </article>`;
}

function Line({ app, thread, line: { id, by, at, text, untrusted }, title }) {
  return html`<p class="digest-line"><span class="hidden-text">${title}</span><b>${by}</b>
    <a href=${app.router.href("thread", [thread, id])} dir="auto">${visible(text)}</a>
    <span class="quiet small"><${Moment} at=${at} />${untrusted && `, ${words.untrusted}`}</span></p>`;
}

const nameOf = (app, thread) => {
  const named = app.state.labels.value.get(thread)?.title;
  return named ? visible(named) : app.state.titleOf(thread);
};

// Requests a digest: first without summaries, then with them.

const DAY_MS = 86_400_000;
const SINCES = {
  last_visit: () => "last_visit",
  day: () => new Date(Date.now() - DAY_MS).toISOString(),
  week: () => new Date(Date.now() - 7 * DAY_MS).toISOString(),
};

/**
 * `since` is a name of SINCES; `limit`: maximum number of threads; a new `times` repeats the request.
 * @returns {{value, problem}}  Null at first. The current value stays until the next one is loaded.
 */
function useDigest(app, { since, limit, times }) {
  const [state, setState] = useState({ value: null, problem: null });
  useEffect(() => {
    let here = true;
    const ask = (summaries) => app.client.call("digest", { since: SINCES[since](), limit, summaries });
    const put = (value) => here && setState({ value, problem: null });
    const read = async () => {
      const value = await ask(false);
      put(value);
      if (here && value.threads.length) put(await ask(true)); // summaries take a model some time
    };
    read().catch((error) => here && error.code && setState({ value: null, problem: error.message }));
    return () => (here = false);
  }, [since, limit, times]);
  return state;
}
