// In a thread's header: whether it is resolved, and the reader's choice; and the dialog for its title.
import { html, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { Icon } from "../../parts/icon.js";
import { words } from "./texts.js";

export function Chips({ app, thread }) {
  const resolver = app.state.labels.value.get(thread.id)?.resolver;
  const choice = app.state.choiceIn(thread.id);
  return html`
    ${resolver && html`<${Chip} icon="check" title=${words.isResolved} about=${words.resolvedBy(resolver)} />`}
    ${choice === "muted" && html`<${Chip} icon="moon" title=${words.isMuted} about=${words.muted} />`}
    ${choice === "followed" && html`<${Chip} icon="bell" title=${words.isFollowed} about=${words.followed} />`}
  `;
}

function Chip({ icon, title, about }) {
  return html`<span class="chip label-chip" title=${about}><${Icon} name=${icon} size=${14} /><span>${title}</span></span>`;
}

export function Rename({ app, store, thread, close }) {
  const [title, setTitle] = useState(() => app.state.labels.peek().get(thread)?.title ?? "");
  const save = async () => void (await store.write("set_thread_title", { thread, title: title.trim() }));
  return html`<${FormDialog} title=${words.dialog} label=${words.save} submit=${save} close=${close}>
    <label class="field">${words.name}
      <input name="title" maxlength="120" autocomplete="off" dir="auto" data-focus value=${title}
        onInput=${(event) => setTitle(event.target.value)} />
    </label>
    <p class="quiet small">${words.hint}</p>
  <//>`;
}
