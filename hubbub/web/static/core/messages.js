// What a message says of itself.
import { visible } from "./markdown.js";

/** A message as text: its text representation, else its content (as JSON if that is no text). */
export function textOf({ content, text_representation, amended }) {
  if (amended === "deleted") return "";
  if (text_representation != null) return text_representation;
  return typeof content === "string" ? content : JSON.stringify(content);
}

// Markdown at the beginning of a line, rulers of tables, and marks around words.
const MARKS = new RegExp([
  /^[ \t]*(?:#{1,6}|>)[ \t]+/, /^[ \t|:-]*--[ \t|:-]*$/, /`/,
  /(?<![\p{L}\p{N}])[*_~]{1,3}(?=\S)/u, /(?<=\S)[*_~]{1,3}(?![\p{L}\p{N}])/u,
].map(({ source }) => source).join("|"), "gmu");
const LINK = /\[([^\]\n]*)\]\([^)\s]*\)/g;

/** The beginning of a message in one line of at most `most` characters. */
export function firstWords(message, most) {
  // A message may have 64 KiB: only what can be shown is looked at.
  const line = visible(textOf(message).slice(0, most * 4))
    .replace(LINK, "$1").replace(MARKS, "").replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line;
}

/** The id of the turn that sent the message, or that a notice of the hub tells of; else null. */
export function turnOf({ cause_id, content, sender_id, sender_kind }) {
  if (sender_kind === "system") return typeof content?.turn === "string" ? content.turn : null;
  return cause_id && agentOf(cause_id) === sender_id ? cause_id : null;
}

/** The agent whose turn it is; null for what is no turn's id. */
export function agentOf(turn) {
  return /^(.+)-m[1-9][0-9]{0,17}$/.exec(turn)?.[1] ?? null;
}

/** The message that first woke the turn; null for what is no turn's id. */
export function wokenBy(turn) {
  return /-(m[1-9][0-9]{0,17})$/.exec(turn)?.[1] ?? null;
}
