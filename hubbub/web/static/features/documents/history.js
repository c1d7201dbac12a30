// `#/document/d3/history`: every version, who wrote it, when and why.
import { visible } from "../../core/markdown.js";
import { listed } from "../../core/pages.js";
import { html, useState } from "../../core/ui.js";
import { Loading } from "../../parts/empty.js";
import { Moment } from "../../parts/moment.js";
import { useWatched } from "../../parts/watched.js";
import { Title } from "./reader.js";
import { words } from "./texts.js";

const PAGE = 50;

export function History({ app, id, news }) {
  const [most, setMost] = useState(PAGE);
  const { value, error } = useWatched(() => listed(app.client, "document_history", { name: "versions", key: "version", id, most }), {
    key: `${id} ${most}`, signs: () => news.signs(id),
  });
  return html`
    <${Title} app=${app} id=${id} found=${value} />
    <div class="page document">
      <${Loading} found=${{ value, error }} />
      ${value && html`<ol class="versions" aria-label=${words.versions}>
        ${value.versions.map((each) => html`<${Version} key=${each.version} app=${app} id=${id} made=${each} />`)}
      </ol>`}
      ${value?.more &&
      html`<button type="button" class="plain" onClick=${() => setMost(most + PAGE)}>${words.older}</button>`}
    </div>
  `;
}

function Version({ app, id, made: { version, author, at, note, lines } }) {
  const href = (...what) => app.router.href("document", [id, ...what]);
  return html`<li>
    <div><b>${words.version(version)}</b>${" "}<span class="quiet small">
      ${words.by(author)}, <${Moment} at=${at} /> · ${words.lines(lines)}</span>
      ${note && html`<p class="small" dir="auto">${visible(note)}</p>`}</div>
    <span class="buttons">
      ${version > 1 && html`<a class="button small" href=${href("changes", version - 1, version)}>
        ${words.changes}</a>`}
      <a class="button small" href=${href(version)}>${words.show}</a>
    </span>
  </li>`;
}
