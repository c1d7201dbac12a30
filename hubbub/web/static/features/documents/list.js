// `#/documents`: all shared documents; `#/documents/<thread>`: those of one thread.
import { visible } from "../../core/markdown.js";
import { listed } from "../../core/pages.js";
import { html, useMemo, useState } from "../../core/ui.js";
import { Empty, Loading } from "../../parts/empty.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { ThreadChoice, threadsOf } from "../../parts/thread-choice.js";
import { useWatched } from "../../parts/watched.js";
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
      <${Loading} found=${{ value, error }} />
      ${value?.documents.length === 0 && html`<${Empty} icon="document" title=${words.empty.title} text=${words.empty.text} />`}
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

// A new document: what it is called, and whose it is.

function Create({ app, thread, close }) {
  const threads = useMemo(() => threadsOf(app, thread), [thread]);
  const [title, setTitle] = useState("");
  const [whose, setWhose] = useState(thread ?? threads[0]);
  const create = async () => {
    const made = await app.client.write("create_document", { title: title.trim(), text: "", thread: whose });
    return () => app.router.go("document", [made.id, "edit"]);
  };
  return html`<${FormDialog} title=${words.create} label=${words.add} ready=${title.trim()} submit=${create} close=${close}>
    <label class="field">${words.name}
      <input name="title" maxlength="200" autocomplete="off" required data-focus value=${title}
        onInput=${(event) => setTitle(event.target.value)} />
    </label>
    <${ThreadChoice} app=${app} label=${words.thread} threads=${threads} value=${whose} change=${setWhose} />
  <//>`;
}
