// How much waits for the reader.

/** What is meant for the reader and was not read: mentions, and direct messages. */
export function waiting(state) {
  let count = 0;
  for (const thread of state.threads.value.values()) {
    count += thread.kind === "direct" ? thread.unread.value : thread.unreadMentions.value;
  }
  return count;
}
