// `#/interaction/<i42>`: everything a message caused. `#/sequence/<thread>`: a thread's last messages
// as the same diagram.
import { isThread } from "../../core/ids.js";
import { count, dollars } from "../../core/numbers.js";
import { duration } from "../../core/time.js";
import { html, useEffect, useMemo, useState } from "../../core/ui.js";
import { Choice } from "../../parts/choice.js";
import { lazy } from "../../parts/lazy.js";
import { useWatched } from "../../parts/watched.js";
import { t } from "../../texts.js";
import { Diagram } from "./diagram.js";
import { readInteraction, totalsOf } from "./reading.js";
import { storyOf, wakesWithin } from "./story.js";
import { SequenceTable } from "./table.js";

const SHOWN = 200;
const Budget = lazy(() => import("./budget.js").then((module) => module.Budget), "control.css");

export function Interaction({ app, args: [id = ""] }) {
  const [most, setMost] = useState(SHOWN);
  const { value: found, error } = useWatched(() => readInteraction(app.client, id, most), {
    key: `${id}:${most}`,
    signs: () => [ofInteraction(app.state.arrived.value, id)],
    goesOn: (whole) => whole?.wakes.some(({ state }) => state !== "ended") ?? false,
  });
  const story = useMemo(() => found && storyOf(cut(found, most)), [found, most]);
  return html`
    <header class="title">
      <h1>${t.interaction.title(id)}</h1>
      <${Switch} app=${app} />
    </header>
    <div class="page">
      ${error && html`<p class="problem" role="alert">${error.message}</p>`}
      ${found && html`<${Totals} found=${found} />`}
      ${found && html`<${Budget} app=${app} id=${id} />`}
      ${story &&
      html`<${Sequence} app=${app} story=${story} view="interaction" args=${[id]} />`}
      ${found && (found.more || found.messages.length > most) && found.messages.length >= most &&
      html`<button type="button" onClick=${() => setMost(most + SHOWN)}>${t.interaction.more}</button>`}
    </div>
  `;
}

/** The latest message, if it belongs to it. */
function ofInteraction(message, id) {
  return message?.interaction_id === id ? message : null;
}

function cut(found, most) {
  if (found.messages.length <= most) return found;
  const messages = found.messages.slice(0, most);
  const here = new Set(messages.map(({ id }) => id));
  return { ...found, messages, wakes: found.wakes.filter(({ message_id }) => here.has(message_id)) };
}

function Totals({ found }) {
  const { messages, turns, tokensIn, tokensOut, cost, took } = totalsOf(found);
  const facts = [
    t.interaction.messagesN(messages),
    turns > 0 && t.interaction.turnsN(turns),
    tokensIn + tokensOut > 0 && t.interaction.tokens(count(tokensIn), count(tokensOut)),
    dollars(cost),
    took && duration(took),
    found.hidden > 0 && t.interaction.hidden(found.hidden),
  ];
  return html`<p class="totals">${facts.filter(Boolean).join(" · ")}</p>`;
}

export function ThreadSequence({ app, args: [id = ""] }) {
  if (!isThread(id)) return html`<div class="empty"><p>${t.conversation.noThread(id)}</p></div>`;
  return html`<${LastOfThread} key=${id} app=${app} id=${id} />`;
}

function LastOfThread({ app, id }) {
  const thread = app.state.thread(id);
  const head = thread.head.value;
  const changed = thread.changed.value;
  useEffect(() => {
    app.tried(() => app.load(id, head - SHOWN / 2 + 1, head));
  }, [id, head]);
  const story = useMemo(() => {
    const last = [...thread.messages.values()].sort((a, b) => a.tseq - b.tseq).slice(-SHOWN);
    return storyOf({ messages: last, wakes: wakesWithin(last), turns: [] });
  }, [id, changed]);
  return html`
    <header class="title">
      <h1><a href=${app.router.href("thread", [id])}>${app.state.titleOf(id)}</a></h1>
      <${Switch} app=${app} />
    </header>
    <div class="page">
      <p class="totals">${t.interaction.lastOfThread(story.rows.length)}</p>
      ${story.rows.length > 0 &&
      html`<${Sequence} app=${app} story=${story} view="sequence" args=${[id]} />`}
    </div>
  `;
}

// The diagram or the table, as the reader prefers.

const asTable = (app) => app.storage.remembered("sequence:table", false);

/** For the title row. */
function Switch({ app }) {
  const { shownAs, asDiagram, asTable: table } = t.interaction;
  return html`<${Choice} label=${shownAs} choices=${[[false, asDiagram], [true, table]]}
    value=${asTable(app).value} choose=${(chosen) => (asTable(app).value = chosen)} />`;
}

/** `view` and `args` are the location, which stays when a panel is opened. */
function Sequence({ app, story, view, args }) {
  const here = (kind, id) => app.router.href(view, args, { kind, id });
  const Shown = asTable(app).value ? SequenceTable : Diagram;
  return html`<${Shown} app=${app} story=${story} here=${here} />`;
}
