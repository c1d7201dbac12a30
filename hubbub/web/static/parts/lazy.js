// What is fetched when it is first shown: not everybody looks into everything every day.
import { focusView } from "../core/focus.js";
import { html, useEffect, useState } from "../core/ui.js";
import { t } from "../texts.js";

const sheets = new Map(); // name -> promise

/**
 * @param load  () => Promise of a component; for example `() => import("./x.js").then((m) => m.X)`.
 * @param {string} [sheet]  A file of styles/ that comes with it.
 */
export function lazy(load, sheet = null) {
  let Loaded = null;
  return function Lazy(props) {
    const [problem, setProblem] = useState(null);
    const [, setLoaded] = useState(Loaded !== null);
    const fetch = () => {
      setProblem(null);
      Promise.all([load(), sheet && style(sheet)]).then(
        ([found]) => setLoaded((Loaded = found) !== null),
        setProblem,
      );
    };
    useEffect(() => {
      if (!Loaded) fetch();
      else if (document.activeElement?.id === "middle") focusView(); // it waits for this view
    }, [Loaded]);
    if (Loaded) return html`<${Loaded} ...${props} />`;
    if (!problem) return null;
    return html`
      <p class="note warn" role="alert">
        ${t.lazy.failed} <button type="button" onClick=${fetch}>${t.retryNow}</button>
      </p>
    `;
  };
}

/** Fetch a file of styles/, once. Resolves when it counts. */
function style(name) {
  if (!sheets.has(name)) sheets.set(name, fetchSheet(name));
  return sheets.get(name);
}

function fetchSheet(name) {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL(`../styles/${name}`, import.meta.url).href;
  return new Promise((resolve, reject) => {
    link.onload = resolve;
    link.onerror = () => {
      link.remove();
      sheets.delete(name);
      reject(new Error(name));
    };
    document.head.append(link);
  });
}
