// The panel of a file with all its details.
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { Loading } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { useWatched } from "../../parts/watched.js";
import { Download } from "./download.js";
import { isPicture, Picture } from "./picture.js";
import { sizeOf } from "./size.js";
import { words } from "./texts.js";

export function FilePanel({ app, id, news, show }) {
  const [removing, setRemoving] = useState(false);
  const { value: file, error } = useWatched(() => app.client.call("file_info", { id }), {
    key: id, signs: () => news.signs(id),
  });
  if (!file) return html`<${Loading} found=${{ value: file, error }} />`;
  const isMine = file.uploaded_by === app.state.me.value || app.state.owner.value;
  return html`<section class="file-panel">
    <h3 dir="auto">${visible(file.name)}</h3>
    ${file.deleted_by && html`<p class="note warn">${words.gonePanel(file.deleted_by)}</p>`}
    ${!file.deleted_by && isPicture(file.media_type) && html`<${Picture} app=${app} show=${show} ...${file} />`}
    ${!file.deleted_by && html`<div class="file-actions">
      <${Download} app=${app} id=${id} name=${file.name} told />
      ${isMine && app.client.may("delete_file") && html`<button type="button" onClick=${() => setRemoving(true)}>
        <${Icon} name="remove" size=${16} />${words.remove}</button>`}
    </div>`}
    <${Facts} app=${app} file=${file} />
    ${removing && html`<${Remove} app=${app} file=${file} close=${() => setRemoving(false)} />`}
  </section>`;
}

function Facts({ app, file }) {
  const { id, size, media_type: type, uploaded_by: by, at, thread, lines, no_text: noText, sha256 } = file;
  return html`<dl class="facts">
    <dt>${words.facts.type}</dt><dd>${type}${file.untrusted && html` <span class="chip">${words.untrusted}</span>`}</dd>
    <dt>${words.facts.size}</dt><dd>${sizeOf(size)}</dd>
    <dt>${words.facts.by}</dt><dd>${by}</dd>
    <dt>${words.facts.at}</dt><dd><${Moment} at=${at} /></dd>
    <dt>${words.facts.thread}</dt><dd>${thread
      ? html`<a href=${app.router.href("thread", [thread])}>${app.state.titleOf(thread)}</a>`
      : words.nowhere}</dd>
    <dt>${words.facts.lines}</dt><dd>${lines ? words.lines(lines) : visible(noText)}</dd>
    <dt>${words.facts.id}</dt><dd><code>${id}</code></dd>
    <dt>${words.facts.sum}</dt><dd><code>${sha256}</code></dd>
  </dl>`;
}

// A dialog that asks before a file is deleted.

function Remove({ app, file, close }) {
  const remove = async () => {
    await app.client.write("delete_file", { id: file.id });
    return () => app.say(words.removed);
  };
  return html`<${FormDialog} title=${words.removeAsk(visible(file.name))} label=${words.remove} danger
    submit=${remove} close=${close}><p>${words.removeText}</p><//>`;
}
