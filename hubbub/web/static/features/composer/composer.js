import { html, useState } from "../../core/ui.js";
import { titleOf } from "../../core/ids.js";
import { t } from "../../texts.js";

export function Composer({ app, thread }) {
  const [text, setText] = useState("");
  const send = () => {
    if (!text.trim()) return;
    app.send(thread.id, text);
    setText("");
  };
  const key = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  };
  return html`<form class="composer" onSubmit=${(event) => (event.preventDefault(), send())}>
    <textarea name="text" rows="2" aria-label=${t.composer.label(titleOf(thread.id, app.state.me.value))}
      value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${key} />
    <button type="submit">${t.composer.send}</button>
  </form>`;
}
