// A rendered text: Markdown, highlighted code with a copy button, and links for references. Long texts
// are folded.
import { count } from "../core/numbers.js";
import { folded, chunks } from "../core/chunks.js";
import { proseCacheOf } from "../core/prose-cache.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../core/ui.js";
import { t } from "../texts.js";
import { frameCode } from "./code-block.js";

/** `whole`: never folded. */
export function Prose({ app, text, whole = false }) {
  const [all, setAll] = useState(false);
  const short = useMemo(() => (whole ? null : folded(text)), [text, whole]);
  const shown = useMemo(() => (all || short === null ? chunks(text) : [short]), [text, all, whole]);
  const click = (event) => follow(app, event);
  const point = (event) => describe(app, event);
  return html`
    <div class="prose" dir="auto" onClick=${click} onPointerOver=${point} onFocusIn=${point}>
      ${shown.map((piece, n) => html`<${Piece} key=${n} app=${app} text=${piece} />`)}
    </div>
    ${short !== null && html`<button type="button" class="plain small show-all" aria-expanded=${all}
      onClick=${() => setAll(!all)}>${all ? t.prose.less : t.prose.all(count(text.length))}</button>`}
  `;
}

/** Rendered at once if this frame has time; until then as plain text. */
function Piece({ app, text }) {
  const place = useRef(null);
  const cache = proseCacheOf(app);
  const draw = () => cache.get(text);
  const [ready, setReady] = useState(() => cache.has(text) || cache.budget.now(draw));
  useEffect(() => {
    if (ready) return undefined;
    return cache.budget.later(() => {
      draw();
      setReady(true);
    });
  }, [text, ready]);
  useLayoutEffect(() => {
    if (!ready) return undefined;
    let here = true;
    const made = cache.get(text);
    const show = () => here && place.current.replaceChildren(made.cloneNode(true));
    frameCode(made)?.then(show);
    show();
    return () => (here = false);
  }, [text, ready]);
  const names = app.state.names.value;
  useEffect(() => {
    if (ready) cache.link(place.current); // a participant or channel was added
  }, [names]);
  // Two elements: Preact must not render into the one that is filled manually.
  return ready
    ? html`<div class="piece" key="drawn" ref=${place} />`
    : html`<div class="piece plain" key="written">${text}</div>`;
}

/** Shows a reference's card on hover. */
async function describe(app, { target }) {
  const link = target.closest("[data-goto], [data-participant], [data-panel]");
  const card = link && (await import("./hover-card.js").catch(() => null)); // not loaded while the hub is unavailable
  if (link?.matches(":hover, :focus")) card?.show(app, link);
}

function follow(app, event) {
  const { target } = event;
  const copy = target.closest("button.copy-code");
  if (copy) {
    app.copy(copy.closest(".code").querySelector("code").textContent, t.prose.copied);
    return;
  }
  const who = target.closest("[data-participant]")?.dataset.participant;
  if (who) app.open("participant", who);
  const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey;
  const opened = target.closest("[data-panel]");
  if (opened && opened.dataset.panel !== "document" && plain) {
    event.preventDefault();
    app.open(opened.dataset.panel, opened.textContent);
  }
  const where = target.closest("[data-goto]")?.dataset.goto;
  if (where && plain) {
    event.preventDefault();
    app.showMessage(where);
  }
}
