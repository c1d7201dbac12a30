// One thread as the page knows it: how long it is, how far it was read, and those of its messages
// that were needed so far. Positions (tseq) are dense from 1, so a message is found by its number
// and what is missing can be fetched as a range.
import { computed, signal } from "../vendor/signals.js";
import { kindOf, parentOf, repliedSeq, rootOf } from "./ids.js";

export const PAGE = 50;
const KEPT = 600; // messages in memory while a thread is open
const KEPT_AT_REST = 50; // and after it was left

export class Thread {
  constructor(id) {
    this.id = id;
    this.kind = kindOf(id);
    this.parent = parentOf(id);
    this.root = rootOf(id);
    this.repliesTo = repliedSeq(id); // seq of the message whose replies these are, or null
    this.head = signal(0); // tseq of the last message
    this.lastSeq = signal(0); // its position in the log: the order of activity
    this.read = signal(0); // tseq up to which it was read
    this.mentions = signal([]); // tseqs of messages that mention the reader
    this.pending = signal([]); // what was said here and is not stored yet, oldest first
    this.changed = signal(0); // counts changes of `messages`
    this.messages = new Map(); // tseq -> message
    this.marking = null; // how far the hub is being asked to note it as read: newer than what it tells
    this.unread = computed(() => Math.max(0, this.head.value - this.read.value));
    this.unreadMentions = computed(
      () => this.mentions.value.filter((tseq) => tseq > this.read.value).length,
    );
  }

  /** The newest message that is known, or null. */
  get latest() {
    return this.messages.get(this.head.value) ?? null;
  }

  at(tseq) {
    return this.messages.get(tseq) ?? null;
  }

  /** Take in what the hub says of the thread (a ThreadSummary). */
  summarise({ head, last_seq, read, messages }) {
    this.head.value = Math.max(this.head.value, head);
    this.lastSeq.value = Math.max(this.lastSeq.value, last_seq);
    this.read.value = this.marking ?? read;
    this.take(messages);
  }

  /** Take in messages, in whatever order. */
  take(messages) {
    if (!messages.length) return;
    for (const message of messages) {
      complete(message);
      this.messages.set(message.tseq, message);
      if (message.tseq > this.head.value) this.head.value = message.tseq;
      if (message.seq > this.lastSeq.value) this.lastSeq.value = message.seq;
    }
    this.changed.value++;
  }

  mentioned(tseq) {
    if (!this.mentions.value.includes(tseq)) this.mentions.value = [...this.mentions.value, tseq];
  }

  /** The first and last position in from..to that are not here; null if none is missing. */
  missing(from, to) {
    let first = Math.max(1, from);
    let last = Math.min(to, this.head.value);
    while (first <= last && this.messages.has(first)) first++;
    while (last >= first && this.messages.has(last)) last--;
    return first <= last ? [first, last] : null;
  }

  /** Forget messages far from `around`; those of the end stay. */
  trim(around = null) {
    const most = around === null ? KEPT_AT_REST : KEPT;
    if (this.messages.size <= most) return;
    const end = this.head.value - KEPT_AT_REST;
    const reach = around === null ? -1 : (KEPT - KEPT_AT_REST) / 2;
    for (const tseq of this.messages.keys()) {
      if (tseq <= end && Math.abs(tseq - (around ?? 0)) > reach) this.messages.delete(tseq);
    }
  }
}

/** Stored messages leave out lists that are empty. */
function complete(message) {
  message.recipients ??= [];
  message.mentions ??= [];
  message.attachments ??= [];
}
