// Threads of replies: what hangs below a message, and the way into it.
import { computed, html } from "../../core/ui.js";
import { parentOf, replyThread } from "../../core/ids.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import { Summary } from "./summary.js";

export default function replies(app) {
  const here = computed(() => (app.here.value ? app.state.repliesIn(app.here.value) : new Map()));
  app.add.marks.add({
    slot: "below", order: 40,
    view: ({ message, thread }) => {
      const found = thread.id === app.here.value ? here.value.get(message.seq) : null;
      return found ? html`<${Summary} app=${app} thread=${found} />` : null;
    },
  });
  app.add.marks.add({ slot: "action", order: 10, view: ReplyAction });
  app.add.commands.add({
    id: "reply", title: t.replies.reply, group: t.conversation.group, keys: "r",
    when: ({ message }) => message !== null && canReply(app, message),
    run: ({ message }) => {
      const thread = replyThread(message.thread_id, message.seq);
      app.state.thread(thread); // it may not exist yet
      app.show(thread);
    },
  });
}

function ReplyAction({ app, message, thread }) {
  if (!canReply(app, message)) return null;
  const run = () => app.run("reply", { thread: thread.id, message, text: "" });
  return html`<button type="button" class="icon small" aria-label=${t.replies.reply}
    title=${t.replies.replyKey} onClick=${run}><${Icon} name="replies" /></button>`;
}

/** The hub says how deep threads of replies may hang in each other. */
function canReply(app, { thread_id: thread }) {
  let depth = 0;
  for (let up = parentOf(thread); up !== null; up = parentOf(up)) depth++;
  return depth < app.state.limits.thread_depth;
}
