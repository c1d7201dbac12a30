// Times in the reader's time zone and language.
import { signal } from "../vendor/signals.js";

const MINUTE_MS = 60_000;

/** The current day, as of `dayOf`: what shows it is drawn again at midnight. */
export const today = signal(dayOf(Date.now()));
setInterval(() => (today.value = dayOf(Date.now())), MINUTE_MS);

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const dayAndYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

export const timeOf = (iso) => clock.format(new Date(iso));
export const fullTime = (iso) => full.format(new Date(iso));

/** A number that is equal for times of the same local day. */
export function dayOf(iso) {
  const date = new Date(iso);
  return date.getFullYear() * 10000 + date.getMonth() * 100 + date.getDate();
}

/** "Today", "Yesterday", or the date. */
export function dayName(iso, now = (today.value, new Date())) {
  const date = new Date(iso);
  const midnight = (d) => new Date(d.getFullYear(), d.getMonth(), d.getDate());
  const days = Math.round((midnight(now).getTime() - midnight(date).getTime()) / 86_400_000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  return date.getFullYear() === now.getFullYear() ? day.format(date) : dayAndYear.format(date);
}

/** A human-readable duration: 0.4 s, 12 s, 3 min, 2 h. */
export function duration(ms) {
  if (ms == null) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  return `${(s / 3600).toFixed(1)} h`;
}
