// A link to a message, with who said it and how it begins.
import { firstWords } from "../core/messages.js";
import { html, useEffect, useState } from "../core/ui.js";
import { t } from "../texts.js";

/** `id` as m42. What the reader may not read is named, and said to be so. */
export function MessageLink({ app, id, most = 60 }) {
  const [message, setMessage] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    let here = true;
    app.message(id).then(
      (found) => here && setMessage(found),
      () => here && setProblem(t.messageLink.unreadable),
    );
    return () => (here = false);
  }, [id]);
  if (problem) return html`<span class="quiet">${id} · ${problem}</span>`;
  if (!message) return html`<span class="quiet">${id}</span>`;
  return html`
    <a class="message-link" href=${app.router.href("thread", [message.thread_id, id])}>
      <b>${app.state.nameOf(message.sender_id)}</b>${" "}<span dir="auto">${firstWords(message, most)}</span>
    </a>
  `;
}
