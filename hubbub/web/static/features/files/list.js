// `#/files`: all files that one may read; `#/files/<thread>`: those of one thread.
import { visible } from "../../core/markdown.js";
import { listed } from "../../core/pages.js";
import { html, useState } from "../../core/ui.js";
import { Empty, Loading } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { useWatched } from "../../parts/watched.js";
import { Download } from "./download.js";
import { sizeOf } from "./size.js";
import { words } from "./texts.js";

const PAGE = 50;

export function List({ app, args: [thread = null], news }) {
  const [most, setMost] = useState(PAGE);
  const { value, error } = useWatched(() => listed(app.client, "list_files", { name: "files", most, ...(thread && { thread }) }), {
    key: `${thread} ${most}`, signs: () => news.signs(), goesOn: () => false,
  });
  const title = thread ? words.inThread(app.state.titleOf(thread)) : words.title;
  return html`
    <header class="title"><h1 class="cut" tabindex="-1" data-focus>${title}</h1>
      ${thread && html`<div class="tools">
        <a class="button plain" href=${app.router.href("files")}>${words.all}</a></div>`}
    </header>
    <div class="page files">
      <${Loading} found=${{ value, error }} />
      ${value?.files.length === 0 && html`<${Empty} icon="clip" title=${words.empty.title} text=${words.empty.text} />`}
      ${value?.files.length > 0 && html`<ul aria-label=${words.list}>
        ${value.files.map((file) => html`<${Item} key=${file.id} app=${app} file=${file} />`)}
      </ul>`}
      ${value?.more &&
      html`<button type="button" class="plain" onClick=${() => setMost(most + PAGE)}>${words.older}</button>`}
    </div>
  `;
}

function Item({ app, file: { id, name, size, thread, uploaded_by: by, at, outside } }) {
  return html`<li class="file-item">
    <${Icon} name="document" size=${18} />
    <button type="button" class="plain name" dir="auto" onClick=${() => app.open("file", id)}>${visible(name)}</button>
    <span class="quiet small about"><span>${sizeOf(size)}</span><span>${words.by(by)}, <${Moment} at=${at} /></span>
      ${thread && html`<a href=${app.router.href("thread", [thread])}>${app.state.titleOf(thread)}</a>`}
      ${outside && html`<span>${words.outside}</span>`}</span>
    <span class="get"><${Download} app=${app} id=${id} name=${name} /></span>
  </li>`;
}
