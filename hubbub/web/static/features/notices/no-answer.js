// A card in place of an answer: the problem in plain words, Try again, and a link to the turn.
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { ask } from "../../parts/ask.js";
import { Icon } from "../../parts/icon.js";
import { useMessage } from "../../parts/message-link.js";
import { later } from "../../texts-later.js";
import { t } from "../../texts.js";

const words = later.noAnswer;
const NAMES = new Intl.ListFormat("en-GB");
const OWN_WORDS = new Set(["finished", "cancelled", "budget_exhausted"]); // outcomes whose reason is written for people
/** @type {[string, RegExp][]}  What the reasons of models' errors have in them. */
const CAUSES = [
  ["key", /refused the API key|\b40[13]\b/i], ["model", /has no model|\b404\b/i],
  ["quota", /too many requests|quota|\b429\b/i], ["late", /did not answer within|timed? ?out/i],
  ["away", /cannot be reached|connection/i], ["broken", /\b5\d\d\b/],
];

export function NoAnswer({ app, message: { content, text_representation: text } }) {
  const { code, agent, agents = [agent], outcomes = {}, reasons = {}, turns = {}, reason = "", turn } = content;
  const { message: asked } = useMessage(app, content.messages[0] ?? null);
  const isSilence = code === "silence";
  const isFailure = !isSilence && code !== "finished";
  const failed = isSilence ? Object.keys(outcomes).filter((id) => outcomes[id] !== "finished") : [];
  const mine = asked && (asked.sent_by ?? asked.sender_id) === app.state.me.value;
  const { control } = app.state;
  const hearing = agents.filter((id) => !isSilence || (asked && control.reads(id, asked.thread_id)));
  const records = Object.entries(turn ? { [agent]: turn } : turns);
  return html`<div class=${isFailure ? "note no-answer danger" : "note no-answer"}>
    <${Icon} name=${isFailure ? "warning" : "info"} />
    <div>
      <p><b>${words.titles[code](NAMES.format(agents))}</b></p>
      ${!isSilence && html`<${Why} code=${code} reason=${reason} />`}
      ${failed.map((id) => html`<p key=${id}>${words.titles[outcomes[id]](id)}.</p>
        ${reasons[id] && html`<${Why} code=${outcomes[id]} reason=${reasons[id]} />`}`)}
      <div class="buttons">
        ${mine && hearing.map((id) => html`<button type="button" class="small" key=${id}
          onClick=${() => ask(app, asked, id)}>${isSilence ? t.wakes.ask(id) : words.again}</button>`)}
        ${app.state.owner.value && records.map(([id, record]) => html`<button type="button" class="small" key=${record}
          onClick=${() => app.open("turn", record)}>
          <${Icon} name="list" size=${14} />${isSilence ? words.turnOf(id) : words.turn}</button>`)}
      </div>
      ${(isFailure ? reason : failed.length > 0) && html`<details class="folded"><summary>${words.details}</summary>
        <p dir="auto">${visible(text)}</p></details>`}
    </div>
  </div>`;
}

function Why({ code, reason }) {
  if (OWN_WORDS.has(code)) return reason && html`<p dir="auto">${visible(reason)}</p>`;
  const cause = code === "model_error" && CAUSES.find(([, pattern]) => pattern.test(reason))?.[0];
  const said = cause ? words.causes[cause] : t.turns.meanings[code];
  return said && html`<p>${said}</p>`;
}
