// A thread in the middle: its title, its messages, and where one writes.
import { html, useEffect } from "../../core/ui.js";
import { PAGE } from "../../core/thread.js";
import { t } from "../../texts.js";
import { Header } from "./header.js";
import { Log } from "./log.js";
import { Parent } from "./parent.js";

export function Conversation({ app, id, at, shown }) {
  const thread = app.state.threads.value.get(id);
  const outside = !app.state.takesPart(id);
  useEffect(() => () => forgetIfUnused(app, id), [id]);
  useEffect(() => {
    if (!thread) app.state.thread(id);
    else if (!thread.head.peek()) meet(app, thread);
  }, [id, thread, outside]);
  if (!thread) return null;
  const title = app.state.titleOf(id);
  const isEmpty = !outside && thread.head.value === 0 && thread.pending.value.length === 0;
  return html`
    <${Header} app=${app} thread=${thread} />
    ${thread.parent && html`<${Parent} app=${app} thread=${thread} />`}
    ${isEmpty && html`<div class="empty"><p>${t.conversation.empty(thread.parent !== null, title)}</p></div>`}
    <${Log} key=${thread} app=${app} thread=${thread} title=${title} at=${at} shown=${shown} />
    <div class="foot">
      ${["notes", "foot"].map((slot) => app.add[slot].items.value.map(
        (part) => html`<${part.view} key=${`${id} ${part.key}`} app=${app} thread=${thread} />`,
      ))}
    </div>
  `;
}

/** A thread that the page has not been told of may be long all the same, or not exist yet. */
async function meet(app, thread) {
  try {
    const page = await app.client.call("read_thread", { thread: thread.id, limit: PAGE });
    thread.take(page.messages);
  } catch (error) {
    if (error.code && error.code !== "unknown_thread") app.say(error.message);
  }
}

/** Threads that were only looked at do not stay among the others. */
function forgetIfUnused(app, id) {
  const threads = app.state.threads.peek();
  const thread = threads.get(id);
  if (!thread || thread.head.peek() || thread.pending.peek().length) return;
  const left = new Map(threads);
  left.delete(id);
  app.state.threads.value = left;
}
