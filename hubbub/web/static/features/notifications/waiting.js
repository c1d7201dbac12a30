// How much waits for the reader.

/** What is meant for the reader: mentions and direct messages not read, approvals not decided. */
export function waiting(state) {
  let count = state.control.waiting.value.length;
  for (const thread of state.threads.value.values()) {
    const calls = thread.kind === "direct" && state.choiceIn(thread.id) !== "muted";
    count += calls ? thread.unread.value : thread.unreadMentions.value;
  }
  return count;
}
