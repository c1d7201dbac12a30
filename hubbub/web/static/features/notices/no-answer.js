// A card in place of an answer: what went wrong in plain words, Try again, and the turn.
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { ask } from "../../parts/ask.js";
import { Icon } from "../../parts/icon.js";
import { useMessage } from "../../parts/message-link.js";
import { later } from "../../texts-later.js";
import { t } from "../../texts.js";

const words = later.noAnswer;
const OWN_WORDS = new Set(["finished", "cancelled", "budget_exhausted"]); // whose reason is for people
/** @type {[string, RegExp][]}  What the reasons of models' errors have in them. */
const CAUSES = [
  ["key", /refused the API key|\b40[13]\b/i], ["model", /has no model|\b404\b/i],
  ["quota", /too many requests|quota|\b429\b/i], ["late", /did not answer within|timed? ?out/i],
  ["away", /cannot be reached|connection/i], ["broken", /\b5\d\d\b/],
];

export function NoAnswer({ app, message: { content, text_representation: text } }) {
  const { code, agent, agents = [agent], outcomes = {}, reason = "", turn } = content;
  const { message: asked } = useMessage(app, content.messages[0] ?? null);
  const isFailure = code !== "silence" && code !== "finished";
  const isOwner = app.state.owner.value;
  const mine = asked && (asked.spoken_by ?? asked.sender_id) === app.state.me.value;
  return html`<div class=${isFailure ? "note no-answer danger" : "note no-answer"}>
    <${Icon} name=${isFailure ? "warning" : "info"} />
    <div>
      <p><b>${words.titles[code](agents.join(", "))}</b></p>
      <${Why} code=${code} reason=${reason} />
      ${code === "silence" && Object.entries(outcomes).map(([id, outcome]) => outcome !== "finished" &&
        html`<p key=${id}>${words.titles[outcome](id)}.</p>`)}
      <div class="buttons">
        ${mine && agents.map((id) => html`<button type="button" class="small" key=${id}
          onClick=${() => ask(app, asked, id)}>${code === "silence" ? t.wakes.ask(id) : words.again}</button>`)}
        ${turn && isOwner && html`<button type="button" class="small" onClick=${() => app.open("turn", turn)}>
          <${Icon} name="list" size=${14} />${words.turn}</button>`}
      </div>
      ${isFailure && reason && html`<details class="folded"><summary>${words.details}</summary>
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
