// A dot that runs along the edges of each message that arrives. For those who prefer reduced motion
// nothing runs: the thicker edge says it.
import { effect, html, useEffect, useRef } from "../../core/ui.js";
import { pathsOf } from "./flows.js";
import { frameOf } from "./frame.js";

const LASTS_MS = 700;
const MOST = 24; // at a time

export function Pulses({ flow, places, size }) {
  const box = useRef(null);
  const latest = useRef(null);
  latest.current = { places, size };
  useEffect(() => {
    let seen = flow.peek().at(-1);
    return effect(() => {
      const last = flow.value.at(-1);
      if (last && last !== seen) run(box.current, pathsOf(last.message), latest.current);
      seen = last;
    });
  }, [flow]);
  return html`<div class="pulses" ref=${box} aria-hidden="true"></div>`;
}

function run(box, paths, { places, size }) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden) return;
  const at = frameOf(places, size);
  const known = paths.filter(([from, to]) => places.has(from) && places.has(to));
  for (const [from, to] of known.slice(0, MOST - box.childElementCount)) {
    const dot = document.createElement("i");
    box.append(dot);
    const place = ({ x, y }) => ({ transform: `translate(${x}px, ${y}px)` });
    const running = dot.animate([place(at(from)), place(at(to))], {
      duration: LASTS_MS,
      delay: from === paths[0][0] ? 0 : LASTS_MS, // from a room on, after it has got there
      easing: "ease-in-out",
      fill: "backwards",
    });
    running.onfinish = running.oncancel = () => dot.remove();
  }
}
