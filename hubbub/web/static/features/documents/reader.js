// The document reader, with actions and comments.
import { visible } from "../../core/markdown.js";
import { html, useMemo, useState } from "../../core/ui.js";
import { Loading } from "../../parts/empty.js";
import { Icon } from "../../parts/icon.js";
import { Moment } from "../../parts/moment.js";
import { Prose } from "../../parts/prose.js";
import { useWatched } from "../../parts/watched.js";
import { Comments } from "./comments.js";
import { Draft } from "./drafts.js";
import { readWithAuthor } from "./reading.js";
import { words } from "./texts.js";

export function Reader({ app, id, version, news }) {
  const { value, error } = useWatched(() => readWithAuthor(app.client, id, version), {
    key: `${id} ${version}`, signs: () => news.signs(id),
  });
  return html`
    <${Title} app=${app} id=${id} found=${value} />
    <div class="page document">
      <${Loading} found=${{ value, error }} />
      ${value && html`
        <${Notes} app=${app} id=${id} found=${value} />
        <${Facts} app=${app} found=${value} />
        <h2 class="hidden-text">${words.text}</h2>
        <article aria-label=${visible(value.document.title)}>
          ${value.text ? html`<${Prose} app=${app} text=${value.text} whole />`
            : html`<p class="quiet">${words.nothing}</p>`}
        </article>
        <${Comments} app=${app} id=${id} news=${news} text=${value.text} isLatest=${isLatest(value)} />`}
    </div>
  `;
}

const isLatest = ({ document, version }) => version === document.version;

/** Above the document in all its views. */
export function Title({ app, id, found, children }) {
  const here = app.route.value.args[1] ?? "";
  const link = (what, icon, title) => html`<a class="button" href=${app.router.href("document", [id, what])}
    title=${title} aria-current=${here === what ? "page" : null}><${Icon} name=${icon} size=${16} />${title}</a>`;
  return html`<header class="title">
    <${Icon} name="document" className="of-thread" />
    <h1 class="cut" tabindex="-1" data-focus dir="auto">
      ${here ? html`<a href=${app.router.href("document", [id])}>${visible(found?.document.title ?? id)}</a>`
        : visible(found?.document.title ?? id)}</h1>
    <div class="tools" role="group" aria-label=${words.actions}>
      ${children ?? html`
        ${app.client.may("write_document") && link("edit", "edit", words.edit)}
        ${link("history", "clock", words.history)}`}
    </div>
  </header>`;
}

function Facts({ app, found: { document, version, made } }) {
  return html`<p class="quiet small about">
    <a href=${app.router.href("thread", [document.thread_id])}>
      ${app.state.titleOf(document.thread_id)}</a>
    <span>${words.version(version)}</span>
    ${made && html`<span>${words.by(made.author)}, <${Moment} at=${made.at} /></span>`}
    ${made?.note && html`<q dir="auto">${visible(made.note)}</q>`}
  </p>`;
}

/** Hints that this is an old version, or that there is an unsaved draft. */
function Notes({ app, id, found }) {
  const draft = useMemo(() => new Draft(app, id), [id]);
  const [hasDraft, setHasDraft] = useState(() => draft.read() !== null);
  const discard = () => {
    draft.drop();
    setHasDraft(false);
    app.say(words.discarded);
  };
  return html`
    ${!isLatest(found) && html`<p class="note info"><span>${words.old(found.version, found.document.version)}</span>
      <a href=${app.router.href("document", [id])}>${words.latest}</a></p>`}
    ${hasDraft && html`<p class="note warn"><span>${words.draft}</span>
      <a class="button small" href=${app.router.href("document", [id, "edit"])}>${words.goOn}</a>
      <button type="button" class="small" onClick=${discard}>${words.discard}</button></p>`}
  `;
}
