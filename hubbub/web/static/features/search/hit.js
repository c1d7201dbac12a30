// One thing that was found, with the place where the words stand.
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { marked } from "./asked.js";
import { words } from "./texts.js";

const ICONS = { messages: "message", documents: "document", files: "clip" };

export function Hit({ app, hit, query }) {
  const { kind, by, at, snippet, title, outside, thread_id: thread } = hit;
  const where = app.state.labels.value.get(thread)?.title ?? app.state.titleOf(thread);
  return html`<li><a class="hit" href=${hrefOf(app, hit)}>
    <${Icon} name=${ICONS[kind]} size=${18} />
    <span class="hidden-text">${words.kind[kind]}</span>
    <span class="name" dir="auto">${title ? html`<${Marked} text=${title} query=${query} />` : by}</span>
    <span class="snippet" dir="auto"><${Marked} text=${plain(snippet)} query=${query} /></span>
    <span class="quiet small about"><span dir="auto">${visible(where)}</span>
      ${title && html`<span>${by}</span>`}<${Moment} at=${at} />
      ${outside && html`<span>${words.outside}</span>`}</span>
  </a></li>`;
}

/** Without the signs of Markdown: a piece of a text cannot be drawn as such. */
const plain = (text) => text.replace(/[*`]+/g, "").replace(/[\s#>|]+/g, " ").trim();

function Marked({ text, query }) {
  return marked(visible(text), query).map(([piece, isFound], n) => (isFound ? html`<mark key=${n}>${piece}</mark>` : piece));
}

/** A message in its thread, a document; a file on the right of what was found. */
function hrefOf({ router }, { kind, id, thread_id: thread }) {
  if (kind === "messages") return router.href("thread", [thread, id]);
  if (kind === "documents") return router.href("document", [id]);
  const { view, args } = router.route.peek();
  return router.href(view, args, { kind: "file", id });
}
