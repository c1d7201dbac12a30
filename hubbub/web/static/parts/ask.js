// Asking an agent once more what was asked: by its name, unless it hears of it anyway.
import { textOf } from "../core/messages.js";

export function ask(app, message, agent) {
  const { thread_id: thread, mentions = [], attachments = [] } = message;
  const text = textOf(message);
  const isMeant = thread.startsWith("dm.") || mentions.includes(agent);
  const extra = attachments.length ? { attachments } : {};
  return app.speak(app.state.thread(thread), isMeant ? text : `@${agent} ${text}`, extra);
}
