// `#/document/d3/changes/2/5`: what is different between two versions.
import { visible } from "../../core/markdown.js";
import { html, useEffect, useState } from "../../core/ui.js";
import { t } from "../../texts.js";
import { Title } from "./reader.js";
import { words } from "./texts.js";

export function Changes({ app, id, old, now }) {
  const [{ of, found, problem }, setState] = useState({});
  const key = `${id} ${old} ${now}`;
  useEffect(() => {
    let here = true;
    app.client.call("diff_document", { id, old, new: now }).then(
      (value) => here && setState({ of: key, found: value }),
      (error) => here && setState({ of: key, problem: error.message }),
    );
    return () => (here = false);
  }, [key]);
  const shown = of === key ? found : null;
  return html`
    <${Title} app=${app} id=${id} found=${shown} />
    <div class="page document">
      <h2>${words.between(old, now)}</h2>
      ${of === key && problem && html`<p class="note danger" role="alert">${problem}</p>`}
      ${of !== key && html`<p class="quiet" role="status">${t.loading}</p>`}
      ${shown && html`<${Unified} diff=${shown.diff} />`}
      ${shown?.cut && html`<p class="quiet">${words.cut}</p>`}
    </div>
  `;
}

/** The lines of a unified difference, without its two lines of names. */
function Unified({ diff }) {
  const lines = diff.split("\n").slice(2);
  if (!lines.length) return html`<p class="quiet">${words.same}</p>`;
  return html`<div class="changes" tabindex="0" role="region" aria-label=${words.difference}>
    ${lines.map((line, n) => html`<${Line} key=${n} line=${line} />`)}
  </div>`;
}

function Line({ line }) {
  if (line.startsWith("@@")) return html`<span class="line gap">${line.replace(/@/g, "").trim()}</span>`;
  const [sign, text] = [line[0], visible(line.slice(1)) || " "];
  const inside = html`<span class="sign" aria-hidden="true">${sign === "-" ? "−" : sign}</span>${text}`;
  if (sign === "+") return html`<ins class="line">${inside}</ins>`;
  if (sign === "-") return html`<del class="line">${inside}</del>`;
  return html`<span class="line">${inside}</span>`;
}
