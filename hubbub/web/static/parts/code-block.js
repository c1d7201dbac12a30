// Code blocks in a text: language label, copy button, syntax colours.
import { t } from "../texts.js";
import { highlight } from "./highlight.js";

const framed = new WeakMap(); // fragment -> promise of its colours, null once they are applied

/**
 * Frames the blocks below `root` permanently; tables become scrollable. Returns a promise while colours
 * are loading, otherwise null.
 */
export function frameCode(root) {
  if (!framed.has(root)) {
    for (const table of root.querySelectorAll("table")) scrollable(table, t.prose.table);
    const blocks = [...root.querySelectorAll("pre > code")].map(frame);
    const coloured = blocks.length ? Promise.all(blocks).then(() => framed.set(root, null)) : null;
    framed.set(root, coloured);
  }
  return framed.get(root);
}

function frame(code) {
  const block = code.parentElement;
  const language = code.className.replace(/^lang-/, "");
  const outer = element("div", "code");
  const top = element("div", "code-top");
  const copy = element("button", "copy-code plain small");
  copy.type = "button";
  copy.textContent = t.prose.copy;
  const name = element("span", "quiet");
  name.textContent = language;
  top.append(name, copy);
  block.replaceWith(outer);
  outer.append(top, block);
  block.tabIndex = 0; // scrollable elements need keyboard focus
  block.setAttribute("role", "group");
  block.setAttribute("aria-label", t.prose.code(language));
  return highlight(code, language);
}

function scrollable(table, label) {
  const around = element("div", "table");
  around.tabIndex = 0;
  around.setAttribute("role", "group");
  around.setAttribute("aria-label", label);
  table.replaceWith(around);
  around.append(table);
}

function element(tag, className) {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}
