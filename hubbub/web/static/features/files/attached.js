// An attachment below its message: an image preview if it is one, and a download button.
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { Download } from "./download.js";
import { isPicture, Picture } from "./picture.js";
import { sizeOf } from "./size.js";
import { words } from "./texts.js";

export function Attached({ app, attachment, news, show }) {
  const { uri, media_type: type, size, name } = attachment;
  const id = uri.slice("file:".length);
  const isGone = attachment.gone || news.about.value.get(id)?.kind === "deleted";
  if (isGone) return html`<li class="attached"><${Gone} name=${name} /></li>`;
  return html`<li class="attached">
    ${isPicture(type) && html`<${Picture} app=${app} id=${id} name=${name} size=${size} show=${show} />`}
    <span class="attached-line">
      ${!isPicture(type) && html`<${Icon} name="document" size=${16} />`}
      <button type="button" class="plain name" dir="auto" aria-label=${words.details(visible(name))}
        title=${words.details(visible(name))} onClick=${() => app.open("file", id)}>${visible(name)}</button>
      <span class="quiet">${sizeOf(size ?? 0)}</span>
      <${Download} app=${app} id=${id} name=${name} />
    </span>
  </li>`;
}

function Gone({ name }) {
  return html`<span class="attached-line quiet"><${Icon} name="document" size=${16} />
    <s dir="auto">${visible(name)}</s> ${words.gone}</span>`;
}
