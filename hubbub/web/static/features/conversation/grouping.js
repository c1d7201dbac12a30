// What stands between two messages: a day, or the sender's name, or nothing.
import { dayOf } from "../../core/time.js";

const GROUP_MS = 5 * 60_000;

/**
 * @param before  The message above, or null if it is not known.
 * @returns {{day: string|null, named: boolean}}  `day`: the time to name the day of, if one begins.
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

/** Whether a person has spoken in the sender's place. */
const isSpoken = ({ spoken_by: person }) => Boolean(person);

/**
 * Whether something that is on its way, or being written, begins with the sender's name; `before`:
 * the message above.
 */
export function isNamed(before, entry, sender) {
  const same = before?.sender_id === sender && isSpoken(before) === Boolean(entry.args?.speak_as);
  const follows = same && entry.at - Date.parse(before.sent_at) < GROUP_MS;
  return !follows || Boolean(entry.args?.quote);
}
