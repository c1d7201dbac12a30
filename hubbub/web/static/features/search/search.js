// `#/search/<words>/<filters>`: a field, filters, and results.
import { visible } from "../../core/markdown.js";
import { html, useEffect, useState } from "../../core/ui.js";
import { Empty } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { threadsOf } from "../../parts/thread-choice.js";
import { argsOf, queryOf, callOf, marked } from "./query.js";
import { words } from "./texts.js";

const NOTHING = { key: null, hits: [], cursor: "", problem: null, answer: null };

export function Search({ app, args }) {
  const asked = queryOf(args);
  const found = useFound(app, asked);
  const look = (changes, how) => app.router.go("search", argsOf({ ...asked, ...changes }), how);
  return html`
    <header class="title"><h1 class="cut" tabindex="-1">${words.title}</h1></header>
    <div class="page search">
      <${Form} key=${asked.query} query=${asked.query} look=${(query) => look({ query })} />
      <${Filters} app=${app} asked=${asked} look=${(changes) => look(changes, { replace: true })} />
      ${asked.query ? html`<${Results} app=${app} asked=${asked} found=${found} />`
        : html`<${Empty} icon="search" title=${words.how.title} text=${words.how.text} />`}
    </div>
  `;
}

function Form({ query, look }) {
  const [text, setText] = useState(query);
  const submit = (event) => {
    event.preventDefault();
    if (text.trim()) look(text.trim());
  };
  return html`<form role="search" class="search-form" onSubmit=${submit}>
    <input type="search" name="query" aria-label=${words.field} placeholder=${words.placeholder} maxlength="500"
      autocomplete="off" dir="auto" data-focus value=${text} onInput=${(event) => setText(event.target.value)} />
    <button type="submit" class="primary">${words.go}</button>
  </form>`;
}

const NEEDS = { messages: "search", documents: "list_documents", files: "list_files" };

function Filters({ app, asked, look }) {
  const kinds = Object.keys(NEEDS).filter((kind) => app.client.may(NEEDS[kind]));
  const people = [...app.state.participants.value.keys()].sort();
  const threads = threadsOf(app, asked.thread || null);
  const choose = (name) => (event) => look({ [name]: event.target.value });
  const kind = (name, title) => html`<button type="button" class="small" aria-pressed=${asked.kind === name}
    onClick=${() => look({ kind: name })}>${title}</button>`;
  return html`<div class="search-filters">
    ${kinds.length > 1 && html`<div class="choice" role="group" aria-label=${words.choose}>
      ${kind("", words.all)}${kinds.map((name) => kind(name, words.kinds[name]))}
    </div>`}
    <details open=${Boolean(asked.by || asked.thread || asked.after || asked.before)}>
      <summary>${words.filters}</summary>
      <div class="search-fields">
        <label class="field">${words.thread}<select value=${asked.thread} onChange=${choose("thread")}>
          <option value="">${words.anywhere}</option>
          ${threads.map((id) => html`<option key=${id} value=${id}>${app.state.titleOf(id)}</option>`)}</select></label>
        <label class="field">${words.by}<select value=${asked.by} onChange=${choose("by")}>
          <option value="">${words.anybody}</option>
          ${people.map((id) => html`<option key=${id} value=${id}>${id}</option>`)}</select></label>
        <label class="field">${words.after}
          <input type="date" value=${asked.after} onChange=${choose("after")} /></label>
        <label class="field">${words.before}
          <input type="date" value=${asked.before} onChange=${choose("before")} /></label>
      </div>
    </details>
  </div>`;
}

function Results({ app, asked, found: { hits, answer, problem, more, busy } }) {
  return html`
    <p class="quiet small" role="status">${!answer && !problem ? words.looking : answer && words.found(hits.length, answer.more)}</p>
    ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
    ${answer?.indexing && html`<p class="note info">${words.indexing}</p>`}
    ${answer?.note && html`<p class="note warn">${answer.note}</p>`}
    ${answer && hits.length === 0 && html`<${Empty} icon="search" title=${words.none.title} text=${words.none.text} />`}
    ${hits.length > 0 && html`<ol class="hits" aria-label=${words.results}>
      ${hits.map((hit) => html`<${Hit} key=${`${hit.kind} ${hit.id}`} app=${app} hit=${hit} query=${asked.query} />`)}
    </ol>`}
    ${answer?.more && html`<button type="button" class="plain" disabled=${busy} onClick=${more}>${words.more}</button>`}
  `;
}

/** The results, page by page. */
function useFound(app, asked) {
  const key = JSON.stringify(asked);
  const [state, setState] = useState(NOTHING);
  const [cursor, setCursor] = useState({ key, at: "" });
  const at = cursor.key === key ? cursor.at : "";
  useEffect(() => {
    if (!asked.query) return undefined;
    let here = true;
    const before = at && state.key === key ? state.hits : [];
    app.client.call("search", callOf(asked, at)).then(
      (answer) => here && setState({ key, hits: [...before, ...answer.hits], answer, problem: null, at }),
      (error) => here && setState({ key, hits: before, answer: null, problem: error.message, at }),
    );
    return () => (here = false);
  }, [key, at]);
  const now = state.key === key ? state : NOTHING;
  return { ...now, busy: now.at !== at, more: () => setCursor({ key, at: now.answer.cursor }) };
}

// One result with a matching excerpt.

const ICONS = { messages: "message", documents: "document", files: "clip" };

function Hit({ app, hit, query }) {
  const { kind, by, at, snippet, title, untrusted, thread_id: thread } = hit;
  const where = app.state.labels.value.get(thread)?.title ?? app.state.titleOf(thread);
  return html`<li><a class="row-item" href=${hrefOf(app, hit)}>
    <${Icon} name=${ICONS[kind]} size=${18} />
    <span class="hidden-text">${words.kind[kind]}</span>
    <span class="name" dir="auto">${title ? html`<${Marked} text=${title} query=${query} />` : by}</span>
    <span class="snippet" dir="auto"><${Marked} text=${plain(snippet)} query=${query} /></span>
    <span class="quiet small about"><span dir="auto">${visible(where)}</span>
      ${title && html`<span>${by}</span>`}<${Moment} at=${at} />
      ${untrusted && html`<span>${words.untrusted}</span>`}</span>
  </a></li>`;
}

/** Without Markdown syntax: an excerpt cannot be rendered. */
const plain = (text) => text.replace(/[*`]+/g, "").replace(/[\s#>|]+/g, " ").trim();

function Marked({ text, query }) {
  return marked(visible(text), query).map(([piece, isFound], n) => (isFound ? html`<mark key=${n}>${piece}</mark>` : piece));
}

/** Opens a message in its thread, a document, or a file on the right. */
function hrefOf({ router }, { kind, id, thread_id: thread }) {
  if (kind === "messages") return router.href("thread", [thread, id]);
  if (kind === "documents") return router.href("document", [id]);
  const { view, args } = router.route.peek();
  return router.href(view, args, { kind: "file", id });
}
