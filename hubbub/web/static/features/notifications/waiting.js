// How much waits for the reader.

/** What is meant for the reader: mentions and direct messages not read, approvals not decided. */
export function waiting(state) {
  let count = state.control.waiting.value.length;
  for (const thread of state.threads.value.values()) {
    count += thread.kind === "direct" ? thread.unread.value : thread.unreadMentions.value;
  }
  return count;
}
