// A message by its id, and a link to it with its sender and its beginning.
import { firstWords } from "../core/messages.js";
import { html, useEffect, useState } from "../core/ui.js";
import { t } from "../texts.js";

/** `id` as m42. A message the reader cannot read is shown by id, with a note. */
export function MessageLink({ app, id, most = 60 }) {
  const { message, problem } = useMessage(app, id);
  if (problem) return html`<span class="quiet">${id} · ${t.messageLink.unreadable}</span>`;
  if (!message) return html`<span class="quiet">${id}</span>`;
  return html`
    <a class="message-link" href=${app.router.href("thread", [message.thread_id, id])}>
      <b>${app.state.nameOf(message.sender_id)}</b>${" "}<span dir="auto">${firstWords(message, most)}</span>
    </a>
  `;
}

/** {message, problem}: a message by its id (null: none) once it is loaded, or why it is not. */
export function useMessage(app, id) {
  const [found, setFound] = useState({});
  useEffect(() => {
    if (id === null) return undefined;
    let here = true;
    app.message(id).then(
      (message) => here && setFound({ id, message }),
      (error) => here && setFound({ id, problem: error.message }),
    );
    return () => (here = false);
  }, [id]);
  if (found.id !== id) return {};
  const { message, problem } = found;
  return { message: message && app.state.current(message), problem };
}
