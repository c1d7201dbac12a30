// Reads a value from the hub, again on changes, while it is shown.
import { effect, useEffect, useState } from "../core/ui.js";

const EVERY_MS = 2000;
const MOST_OFTEN_MS = 300;
const NOTHING = { value: null, error: null };

/**
 * The result of `read`, repeated every two seconds while `goesOn(value, error)` if given, and soon after
 * a value of `signs()` changes: a function that reads signals and returns a list.
 * @param {() => Promise<any>} read
 * @param {object} options
 * @param {string} options.key  What it is about: another one starts from nothing.
 * @param {(value, error) => any} [options.goesOn]
 * @param {() => any[]} [options.signs]
 * @param {number} [options.after]  Milliseconds until the first look.
 * @returns {{value, error}}  Both null at first.
 */
export function useWatched(read, { key, goesOn = () => false, signs = () => [], after = 0 }) {
  const [state, setState] = useState({ ...NOTHING, of: key });
  useEffect(() => {
    const watch = new Watch(
      async () => {
        const next = await read().then(
          (value) => ({ value, error: null, of: key }),
          (error) => ({ value: null, error, of: key }),
        );
        if (!watch.over) setState(next);
        return goesOn(next.value, next.error);
      },
      signs,
      after,
    );
    return () => watch.end();
  }, [key]);
  return state.of === key ? state : NOTHING;
}

/** Schedules reads after a number of milliseconds, one at a time. */
class Watch {
  constructor(look, signs, after) {
    this.look = look;
    this.over = this.looking = this.missed = false;
    this.timer = this.due = 0;
    let seen = null;
    this.unlisten = effect(() => {
      const now = signs();
      if (seen && now.some((each, at) => each !== seen[at])) this.lookIn(MOST_OFTEN_MS);
      seen = now;
    });
    if (after) this.lookIn(after);
    else this.lookNow();
  }

  /** Read within this many milliseconds; an earlier scheduled read stays. */
  lookIn(ms) {
    const due = Date.now() + ms;
    if (this.timer && this.due <= due) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => this.lookNow(), ms);
  }

  async lookNow() {
    this.timer = 0;
    if (document.hidden) return this.lookIn(EVERY_MS);
    if (this.looking) return void (this.missed = true);
    this.looking = true;
    const goesOn = await this.look();
    this.looking = false;
    if (this.over) return;
    if (this.missed) this.lookIn(MOST_OFTEN_MS);
    else if (goesOn) this.lookIn(EVERY_MS);
    this.missed = false;
  }

  end() {
    this.over = true;
    this.unlisten();
    clearTimeout(this.timer);
  }
}

/** For `signs`: the activity of agents (null: any agent). */
export function activitySigns(app, agents) {
  const all = app.state.activities.value;
  const busy = app.state.busy.value;
  return agents ? agents.flatMap((agent) => [all.get(agent), busy.has(agent)]) : [all, busy];
}
