// Asking for a digest: at once without summaries, then with them.
import { useEffect, useState } from "../../core/ui.js";

const DAY_MS = 86_400_000;
const SINCES = {
  last_visit: () => "last_visit",
  day: () => new Date(Date.now() - DAY_MS).toISOString(),
  week: () => new Date(Date.now() - 7 * DAY_MS).toISOString(),
};

/**
 * @param {string} since  A name of SINCES; `limit`: threads at most; `times`: another one asks again.
 * @returns {{value, problem}}  Null at first. What was there stays until the next has come.
 */
export function useDigest(app, { since, limit, times }) {
  const [state, setState] = useState({ value: null, problem: null });
  useEffect(() => {
    let here = true;
    const ask = (summaries) => app.client.call("digest", { since: SINCES[since](), limit, summaries });
    const put = (value) => here && setState({ value, problem: null });
    const read = async () => {
      const value = await ask(false);
      put(value);
      if (here && value.threads.length) put(await ask(true)); // a model takes its time
    };
    read().catch((error) => here && error.code && setState({ value: null, problem: error.message }));
    return () => (here = false);
  }, [since, limit, times]);
  return state;
}
