// `#/documents`: all shared documents; `#/documents/<thread>`: those of one thread.
import { visible } from "../../core/markdown.js";
import { listed } from "../../core/pages.js";
import { html, useMemo, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { Icon } from "../../parts/icon.js";
import { Listing } from "../../parts/listing.js";
import { Moment } from "../../parts/moment.js";
import { ThreadChoice, threadsOf } from "../../parts/thread-choice.js";
import { useWatched } from "../../parts/watched.js";
import { words } from "./texts.js";

const PAGE = 50;

export function List({ app, args: [thread = null], news }) {
  const [most, setMost] = useState(PAGE);
  const [creating, setCreating] = useState(false);
  const found = useWatched(() => listed(app.client, "list_documents", { name: "documents", most, ...(thread && { thread }) }), {
    key: `${thread} ${most}`, signs: () => news.signs(),
  });
  const all = found.value?.documents ?? [];
  return html`
    <${Listing} app=${app} name="documents" icon="document" words=${words} thread=${thread} found=${found}
      isEmpty=${found.value && !all.length} more=${found.value?.more && (() => setMost(most + PAGE))}
      create=${app.client.may("create_document") && (() => setCreating(true))}>
      ${all.length > 0 && html`<ul aria-label=${words.list}>
        ${all.map((each) => html`<${Item} key=${each.id} app=${app} document=${each} />`)}
      </ul>`}
    <//>
    ${creating && html`<${Create} app=${app} thread=${thread} close=${() => setCreating(false)} />`}
  `;
}

function Item({ app, document: { id, title, thread_id: thread, version, created_by: by, created_at: at } }) {
  return html`<li><a class="row-item" href=${app.router.href("document", [id])}>
    <${Icon} name="document" size=${18} />
    <span class="name" dir="auto">${visible(title)}</span>
    <span class="quiet small about"><span>${app.state.titleOf(thread)}</span>
      <span>${words.version(version)}</span><span>${words.by(by)}, <${Moment} at=${at} /></span></span>
  </a></li>`;
}

// A new document: its title and its thread.

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
