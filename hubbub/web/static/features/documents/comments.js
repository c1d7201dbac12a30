// Comments on a document, or on one of its lines.
import { visible } from "../../core/markdown.js";
import { html, useState } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Moment } from "../../parts/moment.js";
import { Prose } from "../../parts/prose.js";
import { useWatched } from "../../parts/watched.js";
import { usePending } from "../../parts/pending.js";
import { words } from "./texts.js";

const said = words.comments;
const PAGE = 50;
const MOST = 200; // the hub's limit per list

export function Comments({ app, id, news, text, isLatest }) {
  const [most, setMost] = useState(PAGE);
  const [resolved, setResolved] = useState(false);
  const { problem, run } = usePending();
  const read = () => app.client.call("read_document_comments", { id, resolved, limit: most });
  const { value, error } = useWatched(read, {
    key: `${id} ${most} ${resolved}`, signs: () => news.signs(id),
  });
  const comments = value?.comments ?? [];
  const resolve = (comment) => run(() => app.client.write("resolve_document_comment", { id, comment }));
  const open = comments.filter((each) => !each.resolved_by).length;
  return html`<section class="comments" aria-label=${said.title(0)}>
    <div class="section"><h2>${said.title(open)}</h2></div>
    ${error && html`<p class="note danger" role="alert">${error.message}</p>`}
    ${value && !comments.length && html`<p class="quiet small">${said.none}</p>`}
    <ul>${comments.map((each) => html`<${Comment} key=${each.id} app=${app} comment=${each} text=${text}
      latest=${isLatest ? value.document.version : null} resolve=${resolve} />`)}</ul>
    ${value?.more && most < MOST && html`<button type="button" class="plain small"
      onClick=${() => setMost(Math.min(MOST, most + PAGE))}>${said.later}</button>`}
    ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
    <label class="option"><input type="checkbox" checked=${resolved}
      onChange=${(event) => setResolved(event.target.checked)} />${said.showResolved}</label>
    ${app.client.may("comment_on_document") && html`<${Add} app=${app} id=${id} />`}
  </section>`;
}

function Comment({ app, comment, text, latest, resolve }) {
  const { id, author, at, line, version, text: what, resolved_by: by } = comment;
  const quoted = line && latest ? text.split("\n")[line - 1] : null;
  return html`<li data-resolved=${by ? "" : null}>
    <${Avatar} app=${app} id=${author} size=${2} />
    <div>
      <p class="small"><b>${author}</b>${" "}<span class="quiet"><${Moment} at=${at} /> · ${
        !line ? said.whole : version === latest ? said.line(line) : `${said.line(line)}, ${said.atVersion(version)}`
      }${by && ` · ${said.resolved(by)}`}</span></p>
      ${quoted && html`<blockquote class="quoted cut" dir="auto">${visible(quoted)}</blockquote>`}
      <${Prose} app=${app} text=${what} />
    </div>
    ${!by && app.client.may("resolve_document_comment") &&
    html`<button type="button" class="small" onClick=${() => resolve(id)}>${said.resolve}</button>`}
  </li>`;
}

function Add({ app, id }) {
  const kept = app.mine.within("comment");
  const [draft, setDraft] = useState(() => kept.get(id) ?? { line: "", text: "" });
  const { busy, problem, run } = usePending();
  const change = (changes) => {
    const next = { ...draft, ...changes };
    setDraft(next);
    if (next.text.trim()) kept.set(id, next);
    else kept.remove(id);
  };
  const add = (event) => {
    event.preventDefault();
    if (!draft.text.trim() || busy) return;
    run(async () => {
      const line = draft.line === "" ? {} : { line: Number(draft.line) };
      await app.client.write("comment_on_document", { id, text: draft.text.trim(), ...line });
      change({ line: "", text: "" });
    });
  };
  return html`<form class="commenting" onSubmit=${add}>
    <label class="field">${said.text}
      <textarea name="comment" rows="2" maxlength="4000" dir="auto" readonly=${busy} value=${draft.text}
        onInput=${(event) => change({ text: event.target.value })}
        onKeyDown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && add(event)} />
    </label>
    <div class="buttons">
      <label class="field line">${said.about}
        <input name="line" type="number" min="1" inputmode="numeric" value=${draft.line}
          onInput=${(event) => change({ line: event.target.value })} /></label>
      <button type="submit" disabled=${busy || !draft.text.trim()}>${said.add}</button>
    </div>
    ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
  </form>`;
}
