// Components loaded when first shown.
import { focusView } from "../core/focus.js";
import { retry } from "../core/retry.js";
import { html, signal, useLayoutEffect } from "../core/ui.js";
import { t } from "../texts.js";

const sheets = new Map(); // name -> promise

/**
 * @param load  () => Promise of a component; for example `() => import("./x.js").then((m) => m.X)`.
 * @param {string} [sheet]  A file of styles/ that comes with it.
 * @param [pause]  Resolves after this many milliseconds.
 */
export function lazy(load, sheet = null, pause = undefined) {
  const part = signal({ Loaded: null, state: "" }); // shared by all places that show it
  let coming = null;
  const become = (state, Loaded = null) => (part.value = { Loaded, state });
  const fetch = () => {
    const both = () => Promise.all([load(), sheet && style(sheet)]);
    coming ??= retry(both, { late: () => become("late"), pause }).then(
      ([Loaded]) => become("", Loaded),
      () => ((coming = null), become("failed")),
    );
  };
  return function Lazy(props) {
    const { Loaded, state } = part.value;
    useLayoutEffect(() => {
      if (!Loaded) fetch();
      else if (document.activeElement?.id === "middle") focusView(); // the focus was waiting for this view
    }, [Loaded]);
    if (Loaded) return html`<${Loaded} ...${props} />`;
    if (state === "late") return html`<p class="note" role="status">${t.lazy.late}</p>`;
    if (state !== "failed") return null;
    return html`
      <p class="note warn" role="alert">
        ${t.lazy.failed} <button type="button" onClick=${fetch}>${t.retryNow}</button>
      </p>
    `;
  };
}

/** Load a file of styles/, once. Resolves when it is applied. */
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
