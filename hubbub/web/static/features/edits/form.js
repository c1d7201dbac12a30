// The form that edits a message, in the composer's place.
import { html, useLayoutEffect, useRef, useState } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { usePending } from "../../parts/pending.js";
import { fit, sends } from "../../parts/text-fields.js";
import { words } from "./texts.js";

export function Form({ app, thread, editing }) {
  const field = useRef(null);
  const [draft, setDraft] = useState(() => editing.read(thread.id));
  const { busy, problem, run, forget } = usePending();
  const { id, text, before } = draft;
  const change = (event) => {
    const next = { ...draft, text: event.target.value };
    setDraft(next);
    forget();
    editing.keep(thread.id, next);
  };
  const leave = () => (editing.read(thread.id)?.id ?? id) === id && editing.end(thread.id); // otherwise another edit was begun
  const save = (event) => {
    event?.preventDefault();
    if (!text.trim() || busy) return undefined;
    if (text === before) return leave();
    return run(async () => {
      const done = await app.client.write("edit_message", { message_id: id, text: text.trim() });
      app.state.message(done.message);
      leave();
      app.say(words.saved);
    });
  };
  const key = (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      leave();
    } else if (event.key === "Enter" && !event.isComposing && sends(event)) save(event);
  };
  useLayoutEffect(() => {
    const { current } = field;
    current.focus();
    current.setSelectionRange(current.value.length, current.value.length);
  }, []);
  useLayoutEffect(() => fit(field.current), [text]);
  return html`
    <form class="composer editing-message" onSubmit=${save}>
      <p class="small"><${Icon} name="edit" size=${14} /><span>${words.editing}</span>
        <a href=${app.router.href("thread", [thread.id, id])}>${id}</a></p>
      <div class="writing">
        <textarea name="text" rows="1" ref=${field} value=${text} aria-label=${words.field} dir="auto"
          autocomplete="off" readonly=${busy} onInput=${change} onKeyDown=${key} />
      </div>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <div class="buttons">
        <button type="submit" class="primary small" disabled=${busy || !text.trim()}>${words.save}</button>
        <button type="button" class="small" onClick=${leave}>${words.cancel}</button>
      </div>
    </form>
  `;
}
