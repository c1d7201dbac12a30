// One thread: its length, its read mark, and the messages loaded so far. Positions (tseq) are dense
// from 1, so that a message is found by its number and missing ones can be fetched as a range.
import { computed, signal } from "../vendor/signals.js";
import { kindOf, parentOf, repliedSeq, rootOf } from "./ids.js";

export const PAGE = 50;
const KEPT = 600; // messages kept in memory while a thread is open
const KEPT_AT_REST = 50; // and after the reader left it

export class Thread {
  constructor(id) {
    this.id = id;
    this.kind = kindOf(id);
    this.parent = parentOf(id);
    this.root = rootOf(id);
    this.repliesTo = repliedSeq(id); // seq of the message it replies to, or null
    this.head = signal(0); // tseq of the last message
    this.lastSeq = signal(0); // its position in the log, for ordering by activity
    this.read = signal(0); // tseq of the last read message
    this.mentions = signal([]); // tseqs of messages that mention the reader
    this.pending = signal([]); // sent but not yet stored, oldest first
    this.changed = signal(0); // counts changes of `messages`
    this.messages = new Map(); // tseq -> message
    this.amending = signal([]); // tseqs of amendments, which are not shown
    this.amendments = new Map(); // message id -> its latest amendment received as an event
    this.marking = null; // the read mark being sent: newer than the hub's
    this.unread = computed(() => Math.max(0, this.saidAfter(this.read.value)));
    this.unreadMentions = computed(
      () => this.mentions.value.filter((tseq) => tseq > this.read.value).length,
    );
  }

  /** The newest loaded message, or null. */
  get latest() {
    return this.at(this.said(this.head.value, -1)) ?? this.at(this.head.value);
  }

  /** Number of loaded messages after a position. */
  saidAfter(tseq) {
    return this.head.value - tseq - this.amending.value.filter((each) => each > tseq).length;
  }

  /** The position, or the next one in a direction that is not an amendment. */
  said(tseq, step) {
    let at = tseq;
    while (this.at(at)?.amends) at += step;
    return at;
  }

  /** The last matching message among those loaded at the end; otherwise null. */
  last(fits) {
    for (let tseq = this.head.peek(); this.at(tseq); tseq--) {
      const message = this.at(tseq);
      if (!message.amends && fits(message)) return message;
    }
    return null;
  }

  at(tseq) {
    return this.messages.get(tseq) ?? null;
  }

  /** Apply a ThreadSummary of the hub. */
  summarise({ head, last_seq, read, messages }) {
    this.head.value = Math.max(this.head.value, head);
    this.lastSeq.value = Math.max(this.lastSeq.value, last_seq);
    this.read.value = this.marking ?? read;
    this.take(messages);
  }

  /** Add messages, in any order. */
  take(messages) {
    if (!messages.length) return;
    for (const message of messages) {
      complete(message);
      this.messages.set(message.tseq, amended(message, this.amendments.get(message.id)));
      if (message.tseq > this.head.value) this.head.value = message.tseq;
      if (message.amends) this.hide(message.tseq);
      else if (message.seq > this.lastSeq.value) this.lastSeq.value = message.seq;
    }
    this.changed.value++;
  }

  hide(tseq) {
    if (!this.amending.peek().includes(tseq)) this.amending.value = [...this.amending.peek(), tseq];
  }

  /** Add an incoming message; an amendment is applied at once. */
  hear(message) {
    if (message.amends) this.amend(message);
    this.take([message]);
  }

  /** Fetched messages include their amendments; these were received before. */
  amend(message) {
    const { message_id: id } = message.amends;
    if (this.amendments.get(id)?.seq > message.seq) return;
    this.amendments.set(id, message);
    for (const [tseq, each] of this.messages) {
      if (each.id === id) this.messages.set(tseq, amended(each, message));
    }
  }

  /** A message loaded elsewhere, with what was amended since. */
  current(message) {
    this.changed.value;
    return amended(message, this.amendments.get(message.id));
  }

  mentioned(tseq) {
    if (!this.mentions.value.includes(tseq)) this.mentions.value = [...this.mentions.value, tseq];
  }

  /** The first and last missing position in from..to; null if none is missing. */
  missing(from, to) {
    let first = Math.max(1, from);
    let last = Math.min(to, this.head.value);
    while (first <= last && this.messages.has(first)) first++;
    while (last >= first && this.messages.has(last)) last--;
    return first <= last ? [first, last] : null;
  }

  /** Unload most of the messages that arrived while the reader was elsewhere. */
  rest() {
    if (this.messages.size > KEPT) this.trim();
  }

  /** Unload messages far from `around`, except those at the end. */
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

/** The message with its amended text, or without content if it was deleted, as the hub shows it. */
function amended(message, amendment) {
  if (!amendment || message.amended === "deleted") return message;
  const { amends: { kind }, content, text_representation = null, untrusted } = amendment;
  if (kind === "edited") {
    return { ...message, content, text_representation, untrusted: message.untrusted || untrusted, amended: kind };
  }
  return { ...message, content: "", text_representation: null, quote: null, attachments: [], amended: kind };
}

/** Stored messages leave out empty lists. */
function complete(message) {
  message.recipients ??= [];
  message.mentions ??= [];
  message.attachments ??= [];
}
