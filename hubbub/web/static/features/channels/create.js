// Creates a channel.
import { html, useState } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { t } from "../../texts.js";
import { create } from "./actions.js";

export function Create({ app, close }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const submit = (event) => {
    event.preventDefault();
    close();
    create(app, { name, description });
  };
  // Names cannot have spaces, which are often typed by habit.
  const named = (event) => setName(event.target.value.replace(/^#/, "").replace(/\s+/g, "-"));
  return html`<${Dialog} title=${t.sidebar.createChannel} close=${close}>
    <form class="body" onSubmit=${submit}>
      <label class="field">${t.channels.name}
        <input name="name" required data-focus pattern="[A-Za-z0-9_\\-]{1,64}" maxlength="64"
          autocomplete="off" autocapitalize="none" value=${name} onInput=${named} title=${t.join.nameHint} />
        <small>${t.channels.nameRule}</small>
      </label>
      <label class="field">${t.channels.description}
        <input name="description" maxlength="1024" autocomplete="off" value=${description}
          onInput=${(event) => setDescription(event.target.value)} />
      </label>
      <div class="actions">
        <button type="button" onClick=${close}>${t.cancel}</button>
        <button type="submit" class="primary">${t.channels.create}</button>
      </div>
    </form>
  </${Dialog}>`;
}
