// The first screen: one click in an open network, otherwise a token.
import { html, useLayoutEffect, useRef, useState } from "../../core/ui.js";
import { idFor } from "../../core/names.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";

export function Join({ app }) {
  const status = app.status.value;
  const under = status.state === "connecting" || status.state === "waiting" || status.state === "ready";
  return html`<main class="join" id="middle">
    <div class="join-card">
      <${Mark} />
      <h1>${t.join.title(app.about.network)}</h1>
      <p class="quiet">${t.join.lead}</p>
      <${under ? Joining : Form} app=${app} status=${status} />
    </div>
    <p class="join-more"><a href="/join">${t.join.others}</a></p>
  </main>`;
}

/** Joining, with a way back. */
function Joining({ app, status }) {
  const away = status.state === "waiting" || status.tries > 0;
  return html`
    <p class="joining" role="status">
      <span class="spinner" aria-hidden="true"></span> ${t.join.joining(app.client.me)}
    </p>
    ${away && html`<p class="note warn" role="alert"><${Icon} name="warning" />${t.join.unreachable}</p>`}
    <button type="button" class="plain" onClick=${() => app.leave()}>${t.join.other}</button>
  `;
}

function Form({ app, status }) {
  const { auth, humans } = app.about;
  const { identity } = app;
  const [name, setName] = useState(() => app.client.me ?? identity.suggested(humans));
  const [token, setToken] = useState(() => app.client.token ?? "");
  const first = useRef(null); // the first field to fill in
  useLayoutEffect(() => first.current.focus(), []);
  const join = (event) => {
    event.preventDefault();
    app.join(id, token.trim() || null, id === name.trim() ? null : { name: name.trim() });
  };
  const id = idFor(name);
  const open = auth !== "tokens";
  const named = identity.knowsName || status.state === "refused";
  return html`<form onSubmit=${join}>
    ${status.state === "refused" && html`<p class="note danger" role="alert"><${Icon} name="warning" />
      <span>${refusal(status)}</span></p>`}
    <label class="field">${t.join.name}
      <input name="name" required maxlength="64" pattern=".*\\S.*" autocomplete="username" spellcheck="false"
        list=${humans.length ? "humans" : null} value=${name}
        onInput=${(event) => setName(event.target.value)} ref=${open || named ? null : first} />
      <small>${id && id !== name.trim() ? t.join.nameId(id)
        : identity.knowsName ? t.join.nameKnown : t.join.nameHint}</small>
    </label>
    ${humans.length > 0 &&
    html`<datalist id="humans">
      ${humans.map((human) => html`<option key=${human} value=${human} />`)}
    </datalist>`}
    ${!open && html`
      <label class="field">${t.join.token}
        <input name="token" type="password" required autocomplete="current-password"
          ref=${named ? first : null} value=${token} onInput=${(event) => setToken(event.target.value)} />
        <small>${t.join.tokenHint}</small>
      </label>`}
    <button type="submit" class="primary" ref=${open ? first : null}>${t.join.button}</button>
  </form>`;
}

function refusal({ code, reason }) {
  return (t.join.refused[code] ?? t.join.refused.other)(reason || String(code));
}

/** Hubbub's logo, as in icon.svg. */
function Mark() {
  return html`<svg class="mark" viewBox="0 0 32 32" width="44" height="44" aria-hidden="true">
    <rect width="32" height="32" rx="8" fill="var(--accent)" />
    <g fill="none" stroke="var(--on-accent)" stroke-width="2.2" stroke-linecap="round">
      <path d="M16 16 8 9M16 16l9-5M16 16l-6 8M16 16l8 7" />
    </g>
    <g fill="var(--on-accent)">
      <circle cx="16" cy="16" r="3.6" /><circle cx="8" cy="9" r="2.6" /><circle cx="25" cy="11" r="2.6" />
      <circle cx="10" cy="24" r="2.6" /><circle cx="24" cy="23" r="2.6" />
    </g>
  </svg>`;
}
