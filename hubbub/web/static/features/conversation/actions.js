// The actions on a message, shown on hover or focus.
import { html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { Marks } from "../../parts/marks.js";
import { Menu } from "../../parts/menu.js";
import { t } from "../../texts.js";

export function Actions({ app, message, thread }) {
  const context = { thread: thread.id, message, text: "" };
  const run = (id) => () => app.run(id, context);
  const others = () => app.add.messageMenu.offered(context);
  const items = [
    { title: t.conversation.copyLink, icon: "link", keys: "C", run: run("copy-link") },
    { title: t.conversation.copyText, icon: "copy", run: run("copy-text") },
    { title: t.conversation.markUnread, icon: "unread", keys: "U", run: run("mark-unread") },
  ];
  return html`<div class="message-actions" role="group" aria-label=${t.conversation.actions}>
    <${Marks} app=${app} slot="action" message=${message} thread=${thread} />
    <button type="button" class="icon small" aria-label=${t.conversation.details}
      title=${t.conversation.detailsKey} onClick=${run("message-details")}><${Icon} name="info" /></button>
    <${Menu} label=${t.conversation.more} items=${() => [...items, ...others()]} className="icon small" />
  </div>`;
}
