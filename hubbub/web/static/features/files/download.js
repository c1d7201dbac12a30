// A button that fetches a file in parts and saves it with the browser.
import { visible } from "../../core/markdown.js";
import { html, useEffect, useRef, useState } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { percent } from "./size.js";
import { words } from "./texts.js";
import { download, keep } from "./transfer.js";

/** `told`: whether the button has a text label. */
export function Download({ app, id, name, told = false }) {
  const [done, setDone] = useState(null); // per cent, while downloading
  const [problem, setProblem] = useState(null);
  const run = useRef(null); // the current download; another one or null: it was stopped
  useEffect(() => () => (run.current = null), []);
  const stop = () => {
    run.current = null;
    setDone(null);
  };
  const start = async () => {
    const mine = (run.current = {});
    const isOver = () => run.current !== mine;
    setProblem(null);
    setDone(0);
    try {
      const got = (bytes, size) => isOver() || setDone(percent(bytes, size));
      const blob = await download(app.client, id, { got, isOver });
      if (blob && !isOver()) keep(blob, name);
    } catch (error) {
      if (!isOver()) setProblem(error.message);
    }
    if (!isOver()) stop();
  };
  const isComing = done !== null;
  const label = isComing ? words.stop(visible(name)) : words.download(visible(name));
  return html`
    <button type="button" class=${told ? "" : "icon small"} aria-label=${label} title=${label}
      onClick=${isComing ? stop : start}>
      <${Icon} name=${isComing ? "close" : "save"} size=${16} />${told && words.save}</button>
    ${isComing && html`<span class="number small">${words.downloading(done)}</span>`}
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}
  `;
}
