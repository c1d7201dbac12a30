// Creates a channel.
import { html, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { t } from "../../texts.js";
import { create } from "./actions.js";

export function Create({ app, close }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  // Names cannot have spaces, which are often typed by habit.
  const named = (event) => setName(event.target.value.replace(/^#/, "").replace(/\s+/g, "-"));
  return html`<${FormDialog} title=${t.sidebar.createChannel} label=${t.channels.create} close=${close}
    submit=${() => create(app, { name, description })}>
    <label class="field">${t.channels.name}
      <input name="name" required data-focus pattern="[A-Za-z0-9_\\-]{1,64}" maxlength="64"
        autocomplete="off" autocapitalize="none" value=${name} onInput=${named} title=${t.join.nameHint} />
      <small>${t.channels.nameRule}</small>
    </label>
    <label class="field">${t.channels.description}
      <input name="description" maxlength="1024" autocomplete="off" value=${description}
        onInput=${(event) => setDescription(event.target.value)} />
    </label>
  <//>`;
}
