// A choice among the reader's threads.
import { kindOf } from "../core/ids.js";
import { html } from "../core/ui.js";

const ORDER = { channel: 0, broadcast: 1, direct: 2 };

/** Ids of the reader's threads, channels first; always including `thread`, if given. */
export function threadsOf(app, thread = null) {
  const isOwn = ({ id, parent }) => parent === null && kindOf(id) in ORDER && app.state.takesPart(id);
  const own = app.state.byActivity.peek().filter(isOwn).map(({ id }) => id);
  const all = [...new Set([...(thread ? [thread] : []), ...own])];
  return all.sort((a, b) => (ORDER[kindOf(a)] ?? 9) - (ORDER[kindOf(b)] ?? 9));
}

export function ThreadChoice({ app, label, threads, value, change }) {
  return html`<label class="field">${label}
    <select name="thread" value=${value} onChange=${(event) => change(event.target.value)}>
      ${threads.map((id) => html`<option key=${id} value=${id}>${app.state.titleOf(id)}</option>`)}
    </select>
  </label>`;
}
