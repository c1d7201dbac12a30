// The page's three columns and the bar above them. What is in them comes from the registry.
import { html, useEffect, useRef } from "./ui.js";
import { t } from "../texts.js";

/** The whole page, once somebody has joined. */
export function Desk({ app }) {
  const { view, args, open } = app.route.value;
  const found = app.add.views.find((each) => each.name === view);
  const narrow = found ? "middle" : "left";
  return html`
    <div class="desk" data-open=${open ? "right" : narrow}>
      <${Bar} app=${app} />
      <nav class="left" aria-label=${t.threads}>
        ${app.add.sidebar.items.value.map(
          (part) => html`<${part.view} key=${part.id} app=${app} />`,
        )}
      </nav>
      <main class="middle" id="middle" tabindex="-1">
        ${found
          ? html`<${found.view} key=${found.name} app=${app} args=${args} />`
          : html`<${Welcome} app=${app} />`}
      </main>
      ${open && html`<${Panel} key=${`${open.kind}:${open.id}`} app=${app} ...${open} />`}
      <${Announcer} app=${app} />
    </div>
  `;
}

function Bar({ app }) {
  const { state } = app.status.value;
  return html`
    <header class="bar">
      <a class="network" href="#/">${app.state.network.value || app.about.network}</a>
      ${state !== "ready" &&
      html`<p class="connection" role="status" data-state=${state}>
        ${t.connection[state]}
        ${state === "waiting" &&
        html`<button class="plain" onClick=${() => app.client.retry()}>${t.retryNow}</button>`}
      </p>`}
      <div class="bar-tools">
        ${app.add.bar.items.value.map((part) => html`<${part.view} key=${part.id} app=${app} />`)}
      </div>
    </header>
  `;
}

function Welcome() {
  return html`<div class="empty"><p>${t.chooseThread}</p></div>`;
}

/** The right column: all that features know of what is opened. */
function Panel({ app, kind, id }) {
  const parts = app.add.panels.items.value.filter((part) => part.kind === kind);
  const heading = useRef(null);
  useEffect(() => heading.current?.focus(), []);
  return html`
    <aside class="right" role="complementary" aria-label=${t.details}>
      <header>
        <h2 tabindex="-1" ref=${heading}>${t.panelTitles[kind] ?? kind}</h2>
        <button class="icon" aria-label=${t.close} onClick=${() => app.close()}>×</button>
      </header>
      <div class="panel">
        ${parts.length
          ? parts.map((part) => html`<${part.view} key=${part.id ?? part.order} app=${app} id=${id} />`)
          : html`<p class="quiet">${t.nothingHere}</p>`}
      </div>
    </aside>
  `;
}

/** One line about what has just happened. */
function Announcer({ app }) {
  const said = app.said.value;
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => (app.said.value = null), 5000);
    return () => clearTimeout(timer);
  }, [said]);
  return html`<div class="announcer" role="status" aria-live="polite">${said?.text}</div>`;
}
