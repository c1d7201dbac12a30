// Separators between two messages: a day, the sender's name, or nothing.
import { dayOf } from "../../core/time.js";

const GROUP_MS = 5 * 60_000;

/**
 * @param before  The previous message, or null if unknown.
 * @returns {{day: string|null, named: boolean}}  `day`: the time whose day to show, if a new day begins.
 */
export function introOf(before, message, isFirst) {
  const newDay = isFirst || (before !== null && dayOf(before.sent_at) !== dayOf(message.sent_at));
  return { day: newDay ? message.sent_at : null, named: newDay || !continues(before, message) };
}

function continues(before, message) {
  return (
    before !== null &&
    before.sender_id === message.sender_id &&
    isSpoken(before) === isSpoken(message) &&
    before.sender_kind !== "system" &&
    message.sender_kind !== "system" &&
    !message.quote &&
    Date.parse(message.sent_at) - Date.parse(before.sent_at) < GROUP_MS
  );
}

/** Whether a person sent it on the sender's behalf. */
const isSpoken = ({ sent_by: person }) => Boolean(person);

/**
 * Whether a pending or partial message shows the sender's name; `before`: the previous message.
 */
export function isNamed(before, entry, sender) {
  const same = before?.sender_id === sender && isSpoken(before) === Boolean(entry.args?.on_behalf_of);
  const follows = same && entry.at - Date.parse(before.sent_at) < GROUP_MS;
  return !follows || Boolean(entry.args?.quote);
}
