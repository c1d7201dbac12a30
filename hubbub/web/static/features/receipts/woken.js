// The hub's decisions about one message: each agent that could have been woken, and why it was or not.
import { html } from "../../core/ui.js";
import { TurnLink } from "../../parts/turn-link.js";
import { mention } from "../../parts/writing.js";
import { later } from "../../texts-later.js";
import { t } from "../../texts.js";

const FOLDED_FROM = 4; // agents that slept on are listed at once if there are fewer

/** `agents`: their receipts. */
export function WhoWasWoken({ app, agents }) {
  const woken = agents.filter((each) => each.woken);
  const asleep = agents.filter((each) => !each.woken);
  return html`
    <section class="wakes">
      <div class="section"><h3>${t.wakes.title}</h3></div>
      ${!woken.length && html`<p class="quiet">${t.wakes.nobody}</p>`}
      <${Decisions} app=${app} receipts=${woken} />
      ${asleep.length < FOLDED_FROM
        ? html`<${Decisions} app=${app} receipts=${asleep} />`
        : html`<details class="folded">
            <summary>${t.wakes.notWoken(asleep.length)}</summary>
            <${Decisions} app=${app} receipts=${asleep} />
          </details>`}
    </section>
  `;
}

function Decisions({ app, receipts }) {
  if (!receipts.length) return null;
  return html`
    <ul>
      ${receipts.map(
        (receipt) => html`<${Decision} key=${receipt.participant} app=${app} receipt=${receipt} />`,
      )}
    </ul>
  `;
}

function Decision({ app, receipt }) {
  const { participant, woken, explanation, turn, state, step, answer } = receipt;
  const { answers, inPrompt, notInPrompt } = later.receipts;
  return html`
    <li class="wake" data-woken=${woken ? "" : null}>
      <b>${app.state.nameOf(participant)}</b>${" "}
      <span class=${woken ? "chip accent" : "chip"}>${woken ? t.wakes.states[state] : t.wakes.no}</span>
      ${answer && html`${" "}<span class=${answer === "answered" ? "chip ok" : "chip warn"}>${answers[answer]}</span>`}
      <p class="quiet">${t.wakes.because(explanation)}</p>
      <p class="quiet small">${t.receipts.outcome(receipt)}</p>
      ${woken && turn && html`<${TurnLink} app=${app} id=${turn}>${t.wakes.turn(turn)}<//>`}
      ${woken && html`${" "}<span class="quiet small">${step != null ? inPrompt(step) : notInPrompt}</span>`}
      ${mayBeAsked(app, receipt) && html`<button type="button" class="small" onClick=${() => mention(participant)}>
        ${t.wakes.ask(participant)}</button>`}
    </li>
  `;
}

/** Whether nothing came of it from an agent that could still be asked by its name, here. */
function mayBeAsked(app, { woken, answer }) {
  return app.here.value !== null && (!woken || answer === "silent" || answer === "declined");
}
