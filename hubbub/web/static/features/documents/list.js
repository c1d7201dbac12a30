// `#/documents`: all shared documents; `#/documents/<thread>`: those of one thread.
import { visible } from "../../core/markdown.js";
import { listed } from "../../core/pages.js";
import { html, useState } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { useWatched } from "../../parts/watched.js";
import { t } from "../../texts.js";
import { Create } from "./create.js";
import { words } from "./texts.js";

const PAGE = 50;

export function List({ app, args: [thread = null], news }) {
  const [most, setMost] = useState(PAGE);
  const [creating, setCreating] = useState(false);
  const { value, error } = useWatched(() => listed(app.client, "list_documents", { name: "documents", most, ...(thread && { thread }) }), {
    key: `${thread} ${most}`, signs: () => news.signs(), goesOn: () => false,
  });
  const title = thread ? words.inThread(app.state.titleOf(thread)) : words.title;
  return html`
    <header class="title"><h1 class="cut" tabindex="-1" data-focus>${title}</h1>
      <div class="tools">
        ${thread && html`<a class="button plain" href=${app.router.href("documents")}>${words.all}</a>`}
        ${app.client.may("create_document") && html`<button type="button" class="primary"
          onClick=${() => setCreating(true)}><${Icon} name="plus" size=${16} />${words.create}</button>`}
      </div>
    </header>
    <div class="page documents">
      ${error && html`<p class="note danger" role="alert">${error.message}</p>`}
      ${!value && !error && html`<p class="quiet" role="status">${t.loading}</p>`}
      ${value?.documents.length === 0 && html`<div class="empty"><${Icon} name="document" size=${32} />
        <h2>${words.empty.title}</h2><p>${words.empty.text}</p></div>`}
      ${value?.documents.length > 0 && html`<ul aria-label=${words.list}>
        ${value.documents.map((each) => html`<${Item} key=${each.id} app=${app} document=${each} />`)}
      </ul>`}
      ${value?.more &&
      html`<button type="button" class="plain" onClick=${() => setMost(most + PAGE)}>${words.older}</button>`}
    </div>
    ${creating && html`<${Create} app=${app} thread=${thread} close=${() => setCreating(false)} />`}
  `;
}

function Item({ app, document: { id, title, thread_id: thread, version, created_by: by, created_at: at } }) {
  return html`<li><a class="document-item" href=${app.router.href("document", [id])}>
    <${Icon} name="document" size=${18} />
    <span class="name" dir="auto">${visible(title)}</span>
    <span class="quiet small about"><span>${app.state.titleOf(thread)}</span>
      <span>${words.version(version)}</span><span>${words.by(by)}, <${Moment} at=${at} /></span></span>
  </a></li>`;
}
