// The threads on the left, grouped.
import { html } from "../../core/ui.js";
import { titleOf } from "../../core/ids.js";
import { t } from "../../texts.js";

export default function threads(app) {
  app.add.sidebar.add({ id: "threads", order: 10, view: Threads });
}

function Threads({ app }) {
  const me = app.state.me.value;
  return html`<ul class="threads">
    ${app.state.byActivity.value.map(
      (thread) => html`<li key=${thread.id}>
        <a href=${app.router.href("thread", [thread.id])} data-thread=${thread.id}
          aria-current=${app.here.value === thread.id ? "page" : null}>
          ${titleOf(thread.id, me)}
          ${thread.unread.value > 0 && html`<span class="count">${thread.unread.value}</span>`}
        </a>
      </li>`,
    )}
  </ul>`;
}
