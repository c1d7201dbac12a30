// Remaining time as text. The page re-renders only when the text changes.
import { html, useEffect, useState } from "../../core/ui.js";
import { fullTime } from "../../core/time.js";
import { later } from "../../texts-later.js";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LONGEST = 6 * HOUR; // timers cannot run for weeks
/** @type {[number, number, string][]} From this duration on: the unit and its text. */
const STEPS = [
  [2 * DAY, DAY, "days"], [2 * HOUR, HOUR, "hours"], [1.5 * MINUTE, MINUTE, "minutes"], [0, SECOND, "seconds"],
];

/** {words, change}: the text for a duration in milliseconds, and the time until it changes. */
export function remaining(ms) {
  const [least, unit, name] = STEPS.find(([from]) => ms >= from) ?? STEPS.at(-1);
  const n = Math.max(0, Math.ceil(ms / unit));
  const next = Math.max(least, (n - 1) * unit);
  return { words: later.left[name](n), change: Math.max(0, ms - next) };
}

/** Milliseconds until a time, as of the last change of its text; at least 0. */
export function useRemaining(until) {
  const [, look] = useState(0);
  const end = Date.parse(until);
  const left = Math.max(0, end - Date.now());
  useEffect(() => {
    if (!left) return undefined;
    const again = () => look((n) => n + 1);
    const timer = setTimeout(again, Math.min(LONGEST, remaining(left).change + 20));
    document.addEventListener("visibilitychange", again);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", again);
    };
  });
  return left;
}

/** `say(words)` formats the sentence; `over` is shown afterwards. */
export function Remaining({ until, say, over = "" }) {
  const left = useRemaining(until);
  const text = left ? say(remaining(left).words) : over;
  return html`<time class=${left < 2 * MINUTE ? "soon" : null} datetime=${until} title=${fullTime(until)}>
    ${text}</time>`;
}
