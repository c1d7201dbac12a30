// Joining: by one click in an open network, with a token elsewhere. The token stays in the
// browser's storage and is never part of an address.
import { html, useState } from "../../core/ui.js";
import { t } from "../../texts.js";

const KEY = "joined";

/** Join as last time, if this browser was in. */
export function rejoin(app) {
  const last = app.storage.get(KEY);
  if (last?.name) app.join(last.name, last.token ?? null);
}

export function Join({ app }) {
  const { network, auth, humans } = app.about;
  const status = app.status.value;
  const [name, setName] = useState(app.storage.get(KEY)?.name ?? humans[0] ?? "you");
  const [token, setToken] = useState("");
  const join = (event) => {
    event.preventDefault();
    app.storage.set(KEY, { name, token: token || null });
    app.join(name, token || null);
  };
  return html`
    <main class="join">
      <form onSubmit=${join}>
        <h1>${t.join.title(network)}</h1>
        <p>${t.join.lead}</p>
        <label>${t.join.name}
          <input name="name" required pattern="[A-Za-z0-9_\\-]{1,64}" title=${t.join.namePattern}
            autocomplete="username" list="humans" value=${name} onInput=${(e) => setName(e.target.value)} />
        </label>
        <datalist id="humans">${humans.map((human) => html`<option value=${human} />`)}</datalist>
        ${auth === "tokens" && html`
          <label>${t.join.token}
            <input name="token" type="password" required autocomplete="current-password"
              value=${token} onInput=${(e) => setToken(e.target.value)} />
            <small>${t.join.tokenHint}</small>
          </label>`}
        ${status.state === "refused" && html`<p class="problem" role="alert">${status.reason}</p>`}
        ${status.state === "waiting" && html`<p class="problem" role="alert">${t.connection.waiting}</p>`}
        <button type="submit" class="primary">${t.join.button}</button>
        <p class="quiet"><a href="/join">${t.join.others}</a></p>
      </form>
    </main>
  `;
}
