// Shows that a message was edited, and its earlier texts.
import { textOf } from "../../core/messages.js";
import { html, useEffect, useState } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { Moment } from "../../parts/moment.js";
import { Prose } from "../../parts/prose.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

/** Below the message: a mark with a link to the earlier texts. */
export function Edited({ show }) {
  return html`<button type="button" class="edited" title=${words.history} onClick=${show}>${words.edited}</button>`;
}

export function HistoryDialog({ app, message: { id }, close }) {
  const [{ versions, more, problem }, setState] = useState({ versions: null, more: false, problem: null });
  const load = async (known) => {
    try {
      const before = known[0]?.seq;
      const page = await app.client.call("message_history", { message_id: id, ...(before && { before }) });
      setState({ versions: [...page.versions, ...known], more: page.more, problem: null });
    } catch (error) {
      if (error.code) setState({ versions: known, more: false, problem: error.message });
    }
  };
  useEffect(() => void load([]), [id]);
  return html`<${Dialog} title=${words.historyTitle} close=${close}>
    <div class="body">
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      ${!versions && html`<p class="quiet" role="status">${t.loading}</p>`}
      ${more && html`<button type="button" class="plain" onClick=${() => load(versions)}>${words.older}</button>`}
      ${versions && html`<ol class="message-versions" aria-label=${words.versions}>
        ${versions.map((each) => html`<${Version} key=${each.seq} app=${app} version=${each} />`)}</ol>`}
    </div>
  <//>`;
}

function Version({ app, version }) {
  const { kind, by, sent_by: person, at } = version;
  return html`<li>
    <p class="quiet small"><b>${words.kinds[kind]}</b>, ${person ?? by}, <${Moment} at=${at} /></p>
    ${kind !== "deleted" && html`<${Prose} app=${app} text=${textOf(version)} />`}
  </li>`;
}
