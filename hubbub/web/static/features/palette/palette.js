// The palette itself: a combobox in a dialog.
import { html, useEffect, useMemo, useRef, useState } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Dialog } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { Shortcut } from "../../parts/shortcut.js";
import { t } from "../../texts.js";
import { find, itemsOf, repliedMessages } from "./items.js";

const LIST = "palette-list";

export function Palette({ app, recent, context, close }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const [replied, setReplied] = useState(new Map());
  useEffect(() => void repliedMessages(app).then(setReplied), []);
  const items = useMemo(() => itemsOf(app, context, replied), [replied]);
  const found = useMemo(() => [...find(query, items, recent), ...finders(app, query)], [query, items]);
  const typed = (event) => {
    setQuery(event.target.value);
    setAt(0);
  };
  const choose = (item) => {
    if (!item) return;
    if (item.kind !== "finder") recent.chose(item.id);
    close();
    // After the dialog has closed, so that the focus moves to the item's destination.
    setTimeout(() => item.run());
  };
  const key = (event) => {
    if (event.isComposing) return;
    const to = moved(event, at, found.length);
    if (to !== null) setAt(to);
    else if (event.key === "Enter") choose(found[at]);
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title=${t.palette.title} close=${close} className="palette" bare=${true}>
    <div class="palette-ask">
      <${Icon} name="search" />
      <input data-focus role="combobox" aria-label=${t.palette.title} aria-expanded="true"
        aria-controls=${LIST} aria-autocomplete="list"
        aria-activedescendant=${found[at] ? `${LIST}-${at}` : null}
        autocomplete="off" autocapitalize="none" spellcheck="false" placeholder=${t.palette.placeholder}
        value=${query} onInput=${typed} onKeyDown=${key} />
    </div>
    <ul class="palette-list" role="listbox" id=${LIST} aria-label=${t.palette.found}>
      ${found.map(
        (item, n) => html`<${Option} key=${item.id} app=${app} item=${item} n=${n} chosen=${n === at}
          choose=${choose} />`,
      )}
    </ul>
    ${!found.length && html`<p class="none" role="status">${t.palette.nothing}</p>`}
    <p class="palette-foot" aria-hidden="true">
      <span><kbd>#</kbd> ${t.sidebar.channels}</span><span><kbd>@</kbd> ${t.people.title}</span>
      <span><kbd>></kbd> ${t.palette.commands}</span>
    </p>
  </${Dialog}>`;
}

/** The features' entries for the current input. */
function finders(app, query) {
  const words = query.trim();
  if (!words || "#@>".includes(words[0])) return [];
  return [...app.add.finders].map(({ key, icon, title, run }) => ({
    id: `finder:${key}`, kind: "finder", title: title(words), at: [], hint: "", icon, run: () => run(words),
  }));
}

/** The new selection after a key; null for other keys. */
function moved(event, at, count) {
  const { key, ctrlKey } = event;
  if (key === "ArrowDown" || (ctrlKey && key === "n")) return count && (at + 1) % count;
  if (key === "ArrowUp" || (ctrlKey && key === "p")) return count && (at + count - 1) % count;
  if (key === "PageDown") return Math.max(0, Math.min(count - 1, at + 8));
  if (key === "PageUp") return Math.max(0, at - 8);
  return null;
}

function Option({ app, item, n, chosen, choose }) {
  const self = useRef(null);
  useEffect(() => {
    if (chosen) self.current.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return html`<li ref=${self} id=${`${LIST}-${n}`} class="list-row" role="option" aria-selected=${chosen}
    onClick=${() => choose(item)}>
    ${item.participant
      ? html`<${Avatar} app=${app} id=${item.participant} size=${1.375} presence=${true} />`
      : html`<${Icon} name=${item.icon} size=${17} />`}
    <span class="name"><${Title} text=${item.title} at=${item.at} /></span>
    <span class="cut quiet small">${item.hint}</span>
    <span class="end">
      ${item.unread > 0 && html`<span class="badge">${item.unread}</span>`}
      ${item.keys && html`<${Shortcut} keys=${item.keys} />`}
    </span>
  </li>`;
}

/** The text with its matched letters highlighted. */
function Title({ text, at }) {
  if (!at.length) return text;
  const found = new Set(at);
  return [...text].map((char, n) => (found.has(n) ? html`<b key=${n}>${char}</b>` : char));
}
