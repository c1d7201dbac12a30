// A card with details of a reference in a text, on hover or focus. Loaded on first use.
import { firstWords } from "../core/messages.js";
import { timeOf } from "../core/time.js";
import { html, render } from "../core/ui.js";
import { visible } from "../core/markdown.js";
import { t } from "../texts.js";
import { Avatar } from "./avatar.js";
import { Icon } from "./icon.js";
import { place } from "./menu.js";

const AFTER_MS = 150; // no request when the pointer only passes
const ID = "hover-card";
let shown = null; // {link, end}: one at a time

/** Show the card of a link until pointer and focus are elsewhere. */
export async function show(app, link) {
  if (shown?.link === link) return;
  shown?.end();
  const life = new AbortController();
  const mine = { link, end: () => life.abort() };
  shown = mine;
  life.signal.addEventListener("abort", () => (shown = shown === mine ? null : shown));
  const on = (target, names, run = mine.end) =>
    names.forEach((name) => target.addEventListener(name, run, { capture: true, signal: life.signal }));
  on(link, ["pointerleave", "blur", "click"]);
  on(window, ["scroll", "hashchange"]);
  on(window, ["keydown"], ({ key }) => key === "Escape" && mine.end());
  await new Promise((then) => setTimeout(then, AFTER_MS));
  const about = life.signal.aborted || (await read(app, link).catch(() => ({ title: t.messageLink.unreadable })));
  if (!life.signal.aborted && link.isConnected) open(app, link, about, life.signal);
}

function open(app, link, about, signal) {
  const box = document.createElement("div");
  Object.assign(box, { id: ID, className: "hover-card", role: "tooltip", popover: "manual" });
  document.body.append(box);
  render(html`<${Card} app=${app} ...${about} />`, box);
  box.showPopover();
  place(box, link);
  link.setAttribute("aria-describedby", ID);
  signal.addEventListener("abort", () => {
    render(null, box);
    box.remove();
    link.removeAttribute("aria-describedby");
  });
}

function Card({ app, icon, who, title, text, facts = [] }) {
  return html`
    <p class="title">
      ${who ? html`<${Avatar} app=${app} id=${who} size=${1.25} />` : icon && html`<${Icon} name=${icon} size=${16} />`}
      <b dir="auto">${title}</b></p>
    ${text && html`<p dir="auto">${visible(text)}</p>`}
    ${facts.some(Boolean) && html`<p class="quiet">${facts.filter(Boolean).join(" · ")}</p>`}`;
}

/** By kind of panel: the details of an id. */
const ABOUT = {
  document: async (ask, id) => {
    const { document: { title, thread_id: thread } } = await ask("read_document", { id, last: 1 });
    return { icon: "document", title, facts: [id, thread?.replace("channel.", "#")] };
  },
  file: async (ask, id) => ({ icon: "clip", title: (await ask("file_info", { id })).name, facts: [id] }),
  task: async (ask, task) => {
    const { title, state, owner } = (await ask("read_task", { task, limit: 1 })).task;
    return { icon: "board", title, facts: [task, state.replaceAll("_", " "), owner] };
  },
  turn: async (ask, id) => {
    const { agent, end } = await ask("read_turn", { id });
    return { who: agent, title: agent, text: end?.reason, facts: [id, t.outcomes[end?.outcome ?? "running"]] };
  },
};

async function read(app, link) {
  const { goto: message, participant, panel } = link.dataset;
  if (panel) return ABOUT[panel]((name, args) => app.client.call(name, args), link.textContent);
  if (participant) {
    const { kind, card } = app.state.participant(participant) ?? {};
    return { who: participant, title: app.state.nameOf(participant), text: card?.description, facts: [t.people.kinds[kind]] };
  }
  const found = await app.message(message);
  const facts = [message, app.state.titleOf(found.thread_id), timeOf(found.sent_at)];
  return { who: found.sender_id, title: app.state.nameOf(found.sender_id), text: firstWords(found, 200), facts };
}
