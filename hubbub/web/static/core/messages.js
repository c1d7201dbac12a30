// Helpers that read a message.
import { t } from "../texts.js";
import { visible } from "./markdown.js";

/** A message as text: its text representation, otherwise its content (as JSON if it is not text). */
export function textOf({ content, text_representation, amended }) {
  if (amended === "deleted") return "";
  if (text_representation != null) return text_representation;
  return typeof content === "string" ? content : JSON.stringify(content);
}

// Markdown at the start of a line, table rulers, and emphasis marks.
const MARKS = new RegExp([
  /^[ \t]*(?:#{1,6}|>)[ \t]+/, /^[ \t|:-]*--[ \t|:-]*$/, /`/,
  /(?<![\p{L}\p{N}])[*_~]{1,3}(?=\S)/u, /(?<=\S)[*_~]{1,3}(?![\p{L}\p{N}])/u,
].map(({ source }) => source).join("|"), "gmu");
const LINK = /\[([^\]\n]*)\]\([^)\s]*\)/g;

/** The beginning of a message as one line of at most `most` characters. */
export function firstWords(message, most) {
  if (message.amended === "deleted") return t.conversation.deleted;
  // A message can have 64 KiB: process only what can be shown.
  const line = visible(textOf(message).slice(0, most * 4))
    .replace(LINK, "$1").replace(MARKS, "").replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line;
}

/** The id of the turn that sent the message, or that a notice is about; otherwise null. */
export function turnOf({ cause_id, content, sender_id, sender_kind }) {
  if (sender_kind === "system") return typeof content?.turn === "string" ? content.turn : null;
  return cause_id && agentOf(cause_id) === sender_id ? cause_id : null;
}

/** The agent of a turn id; null for other ids. */
export function agentOf(turn) {
  return /^(.+)-m[1-9][0-9]{0,17}$/.exec(turn)?.[1] ?? null;
}

/** The message that woke the turn; null for other ids. */
export function wokenBy(turn) {
  return /-(m[1-9][0-9]{0,17})$/.exec(turn)?.[1] ?? null;
}
