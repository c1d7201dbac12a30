// What is fetched when it is first shown: not everybody looks into everything every day.
import { focusView } from "../core/focus.js";
import { html, useEffect, useState } from "../core/ui.js";
import { t } from "../texts.js";

/** @param load  () => Promise of a component; for example `() => import("./x.js").then((m) => m.X)`. */
export function lazy(load) {
  let Loaded = null;
  return function Lazy(props) {
    const [problem, setProblem] = useState(null);
    const [, setLoaded] = useState(Loaded !== null);
    const fetch = () => {
      setProblem(null);
      load().then((found) => setLoaded((Loaded = found) !== null), setProblem);
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
