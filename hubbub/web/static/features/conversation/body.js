// The content of a message: text or JSON, with its quote above and its attachments below.
import { html } from "../../core/ui.js";
import { visible } from "../../core/markdown.js";
import { count } from "../../core/numbers.js";
import { AsJson } from "../../parts/as-json.js";
import { Icon } from "../../parts/icon.js";
import { Prose } from "../../parts/prose.js";
import { t } from "../../texts.js";

export function Body({ app, message }) {
  const own = app.add.bodies.items.value.find(({ of }) => of(message));
  return html`<${own?.view ?? Words} app=${app} message=${message} />`;
}

function Words({ app, message }) {
  const { content, text_representation: text, quote, attachments, amended } = message;
  if (amended === "deleted") return html`<p class="quiet">${t.conversation.deleted}</p>`;
  const isText = typeof content === "string";
  return html`
    ${quote && html`<${Quote} app=${app} quote=${quote} />`}
    ${(isText || text != null) && html`<${Prose} app=${app} text=${text ?? content} />`}
    ${!isText && html`<${AsJson} title=${t.conversation.json(outline(content))} text=${() => pretty(content)} />`}
    ${attachments.length > 0 && html`<ul class="attachments" aria-label=${t.conversation.attachments}>
      ${attachments.map((each) => html`<${Attachment} app=${app} attachment=${each} />`)}
    </ul>`}
  `;
}

function Quote({ app, quote }) {
  const go = (event) => {
    event.preventDefault();
    app.showMessage(quote.message_id);
  };
  return html`<blockquote class="quoted" dir="auto">
    <a href=${app.router.href("message", [quote.message_id])} onClick=${go}>${quote.message_id}</a>
    ${" "}${visible(quote.text.slice(0, 600))}
  </blockquote>`;
}

const MOST_JSON = 20_000;

function pretty(value) {
  const text = visible(JSON.stringify(value, null, 2));
  return text.length > MOST_JSON ? `${text.slice(0, MOST_JSON)}\n…` : text;
}

function outline(value) {
  if (Array.isArray(value)) return t.conversation.items(value.length);
  if (value === null || typeof value !== "object") return visible(String(value)).slice(0, 40);
  const names = Object.keys(value).slice(0, 4).join(", ");
  return visible(names).slice(0, 60);
}

function Attachment({ app, attachment }) {
  const own = app.add.attachments.find(({ of }) => of(attachment));
  if (own) return html`<${own.view} key=${attachment.uri} app=${app} attachment=${attachment} />`;
  const { name, uri, media_type: type, size } = attachment;
  const safe = /^https?:\/\//i.test(uri);
  const inside = html`<${Icon} name="link" size=${16} /><span dir="auto">${visible(name)}</span>`;
  return html`<li>
    ${safe ? html`<a href=${uri} target="_blank" rel="noopener noreferrer nofollow">${inside}</a>` : inside}
    <span class="quiet">${size == null ? type : t.conversation.bytes(type, count(size))}</span>
  </li>`;
}
