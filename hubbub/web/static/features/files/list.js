// `#/files`: all files the reader can read; `#/files/<thread>`: those of one thread.
import { visible } from "../../core/markdown.js";
import { listed } from "../../core/pages.js";
import { html, useState } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { Listing } from "../../parts/listing.js";
import { Moment } from "../../parts/moment.js";
import { useWatched } from "../../parts/watched.js";
import { Download } from "./download.js";
import { sizeOf } from "./size.js";
import { words } from "./texts.js";

const PAGE = 50;

export function List({ app, args: [thread = null], news }) {
  const [most, setMost] = useState(PAGE);
  const found = useWatched(() => listed(app.client, "list_files", { name: "files", most, ...(thread && { thread }) }), {
    key: `${thread} ${most}`, signs: () => news.signs(),
  });
  const all = found.value?.files ?? [];
  return html`
    <${Listing} app=${app} name="files" icon="clip" words=${words} thread=${thread} found=${found}
      isEmpty=${found.value && !all.length} more=${found.value?.more && (() => setMost(most + PAGE))}>
      ${all.length > 0 && html`<ul aria-label=${words.list}>
        ${all.map((file) => html`<${Item} key=${file.id} app=${app} file=${file} />`)}
      </ul>`}
    <//>
  `;
}

function Item({ app, file: { id, name, size, thread, uploaded_by: by, at, untrusted } }) {
  return html`<li class="file-item">
    <${Icon} name="document" size=${18} />
    <button type="button" class="plain name" dir="auto" onClick=${() => app.open("file", id)}>${visible(name)}</button>
    <span class="quiet small about"><span>${sizeOf(size)}</span><span>${words.by(by)}, <${Moment} at=${at} /></span>
      ${thread && html`<a href=${app.router.href("thread", [thread])}>${app.state.titleOf(thread)}</a>`}
      ${untrusted && html`<span>${words.untrusted}</span>`}</span>
    <span class="get"><${Download} app=${app} id=${id} name=${name} /></span>
  </li>`;
}
