// Where a turn's time went: a table with a row for each call of the model and each of a tool, and a
// bar in each row.
import { duration } from "../../core/time.js";
import { html } from "../../core/ui.js";
import { t } from "../../texts.js";
import { timeline } from "./record.js";
import { words } from "./texts.js";

/** `names`: see `stepNames`. `onStep(n)` is called when somebody wants to see a step. */
export function Waterfall({ turn, names, onStep }) {
  const { rows, total } = timeline(turn, Date.now());
  const { what, when, took } = words.columns;
  if (!rows.length) return html`<p class="quiet">${words.noSteps}</p>`;
  return html`
    <table class="waterfall">
      <caption class="hidden-text">${words.timeline}</caption>
      <colgroup><col class="what" /><col /><col class="took" /></colgroup>
      <thead class="hidden-text">
        <tr><th>${what}</th><th>${when}</th><th>${took}</th></tr>
      </thead>
      <tbody>
        ${rows.map((row, at) => html`<${Row} key=${at} row=${row} total=${total} names=${names} onStep=${onStep} />`)}
      </tbody>
    </table>
  `;
}

function Row({ row, total, names, onStep }) {
  const { kind, name, step, start, end, error } = row;
  const label = kind === "tool" || kind === "model" ? name : words.kinds[kind];
  return html`
    <tr data-kind=${kind} data-error=${error ? "" : null}>
      <th scope="row">
        ${step === null
          ? label
          : html`<button type="button" class="plain" title=${words.toStep(names.get(step))}
              onClick=${() => onStep(step)}>${label}</button>`}
      </th>
      <td class="track">
        ${start !== null && html`<${Bar} start=${start} end=${end ?? total} total=${total} />`}
      </td>
      <td class="number">
        ${kind === "rest" ? t.outcomes.running : end === null ? "" : duration(end - start)}
        ${error && html`${" "}<span class="problem">${error}</span>`}
      </td>
    </tr>
  `;
}

function Bar({ start, end, total }) {
  const place = {
    insetInlineStart: `${(100 * start) / total}%`,
    width: `max(3px, ${(100 * (end - start)) / total}%)`,
  };
  return html`
    <span class="hidden-text">${words.at(duration(start))}</span>
    <span class="bar-of-time" style=${place} aria-hidden="true"></span>
  `;
}
