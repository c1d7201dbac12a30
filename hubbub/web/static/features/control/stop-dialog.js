// The dialog that chooses what to stop: a turn, a thread, an agent, or everything.
import { agentOf } from "../../core/messages.js";
import { html, useMemo, useState } from "../../core/ui.js";
import { FormDialog } from "../../parts/form-dialog.js";
import { later } from "../../texts-later.js";

const words = later.stop;

/** `about` has the preselected thread, turn, agent and reason, if any. */
export function StopDialog({ app, about, close }) {
  const choices = useMemo(() => choicesOf(app, about), [about]);
  const [at, setAt] = useState(0);
  const [reason, setReason] = useState(about.reason ?? "");
  const stop = async () => {
    const { scope, target } = choices[at];
    const { turns = 0, wakes = 0 } = await app.client.write("stop", { scope, target, reason: reason.trim() });
    return () => app.say(words.done(turns, wakes));
  };
  return html`<${FormDialog} title=${words.title} label=${words.now} danger ready=${choices.length} submit=${stop}
    close=${close} className="stop-dialog">
    ${!choices.length && html`<p>${words.nothing}</p>`}
    <fieldset class="scopes" aria-label=${words.what}>
      ${choices.map(({ title, hint }, n) => html`<label key=${n} class="scope">
        <input type="radio" name="scope" checked=${n === at} data-focus=${n === at ? "" : null}
          onChange=${() => setAt(n)} />
        <span><b>${title}</b><small class="quiet">${hint}</small></span>
      </label>`)}
    </fieldset>
    <label class="field">${words.reason}
      <input name="reason" maxlength="1000" autocomplete="off" value=${reason}
        onInput=${(event) => setReason(event.target.value)} />
      <small>${words.reasonHint}</small>
    </label>
  <//>`;
}

/** The choices, narrowest first: {scope, target, title, hint}. Only owners can stop agents and everything. */
function choicesOf(app, { thread = null, turn = null, agent = null }) {
  const { control } = app.state;
  const working = thread ? control.workIn(thread) : [];
  const turns = turn ? [[agentOf(turn), turn]] : working.map(([id, doing]) => [id, doing.turn]);
  const isKnown = (id) => app.state.participant(id)?.kind === "agent";
  const found = turns
    .filter(([id, of]) => of && (!agent || id === agent))
    .map(([id, of]) => ({ scope: "turn", target: of, title: words.turn(id), hint: words.turnHint }));
  if (thread) {
    const title = words.thread(app.state.titleOf(thread));
    found.push({ scope: "thread", target: thread, title, hint: words.threadHint });
  }
  if (!app.state.owner.peek()) return found;
  const inDirect = thread?.startsWith("dm.") ? thread.split(".").slice(1) : [];
  const agents = [agent, ...turns.map(([id]) => id), ...inDirect].filter((id) => id && isKnown(id));
  for (const id of new Set(agents)) {
    found.push({ scope: "agent", target: id, title: words.agent(id), hint: words.agentHint });
  }
  return [...found, { scope: "all", title: words.all, hint: words.allHint }];
}
