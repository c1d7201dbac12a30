// Asks an agent the same question again, by name unless it is woken anyway.
import { textOf } from "../core/messages.js";

export function ask(app, message, agent) {
  const { thread_id: thread, mentions = [], attachments = [] } = message;
  const text = textOf(message);
  const isMeant = thread.startsWith("dm.") || mentions.includes(agent);
  const extra = attachments.length ? { attachments } : {};
  return app.speak(app.state.thread(thread), isMeant ? text : `@${agent} ${text}`, extra);
}
