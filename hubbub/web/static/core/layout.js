// The page's three columns and the bar above them. The registry provides their content.
import { html, useEffect, useLayoutEffect, useRef } from "./ui.js";
import { ConnectionState } from "./connection.js";
import { focusView, returnFocus } from "./focus.js";
import { Empty } from "../parts/empty.js";
import { Icon } from "../parts/icon.js";
import { t } from "../texts.js";

/** The whole page after joining. */
export function Layout({ app }) {
  const { view, args, open } = app.route.value;
  const found = app.add.views.find((each) => each.name === view);
  const narrow = view ? "middle" : "left";
  const epoch = app.state.epoch.value; // nothing shown is valid in another log
  useLayoutEffect(() => focusView(), [view, args.join("/"), epoch]);
  return html`
    <div class="desk" data-open=${open ? "right" : narrow} data-left=${app.leftShown.value ? null : "away"}>
      <a class="skip" href="#middle" onClick=${(event) => (event.preventDefault(), focusView(true))}>
        ${t.skip}
      </a>
      <${Bar} app=${app} />
      <nav class="left" aria-label=${t.threads}>
        ${app.add.sidebar.items.value.map(
          (part) => html`<${part.view} key=${part.key} app=${app} />`,
        )}
      </nav>
      <main class="middle" id="middle" tabindex="-1">
        ${found
          ? html`<${found.view} key=${`${found.name} ${epoch}`} app=${app} args=${args} />`
          : html`<${Empty} icon="compass" title=${t.nowhere.title} text=${t.nowhere.text}>
              <a class="button" href="#/">${t.nowhere.home}</a><//>`}
      </main>
      ${open && html`<${Panel} key=${`${open.kind}:${open.id} ${epoch}`} app=${app} ...${open} />`}
      ${app.add.layers.items.value.map((part) => html`<${part.view} key=${part.key} app=${app} />`)}
      <${Announcer} app=${app} />
    </div>
  `;
}

function Bar({ app }) {
  const { view, open } = app.route.value;
  const back = open
    ? html`<button class="icon back" aria-label=${t.back} title=${t.back} onClick=${() => app.close()}>
        <${Icon} name="back" />
      </button>`
    : html`<a class="icon back" aria-label=${t.back} title=${t.back} href="#/"><${Icon} name="back" /></a>`;
  return html`
    <header class="bar">
      ${(open || view) && back}
      <button class="icon left-toggle" aria-label=${t.leftColumn} title=${`${t.leftColumn} [`}
        aria-pressed=${app.leftShown.value} onClick=${() => (app.leftShown.value = !app.leftShown.value)}>
        <${Icon} name="columnLeft" />
      </button>
      <a class="network" href="#/">${app.state.network.value || app.about.network}</a>
      <${ConnectionState} app=${app} />
      <div class="bar-tools">
        ${app.add.bar.items.value.map((part) => html`<${part.view} key=${part.key} app=${app} />`)}
      </div>
    </header>
  `;
}

/** The right column: everything features show for the open item. */
function Panel({ app, kind, id }) {
  const parts = app.add.panels.items.value.filter((part) => part.kind === kind);
  const title = parts.find((part) => part.title)?.title;
  const heading = useRef(null);
  useLayoutEffect(() => returnFocus(heading.current), []);
  return html`
    <aside class="right" role="complementary" aria-label=${t.details}>
      <header>
        <h2 tabindex="-1" ref=${heading}>${title ?? t.panelTitles[kind] ?? kind}</h2>
        <button class="icon" aria-label=${t.close} title=${`${t.close} Esc`} onClick=${() => app.close()}>
          <${Icon} name="close" />
        </button>
      </header>
      <div class="panel">
        ${parts.length
          ? parts.map((part) => html`<${part.view} key=${part.key} app=${app} id=${id} />`)
          : html`<p class="quiet">${t.nothingHere}</p>`}
      </div>
    </aside>
  `;
}

/** A one-line notice, also for screen readers. */
function Announcer({ app }) {
  const said = app.said.value;
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => (app.said.value = null), 5000);
    return () => clearTimeout(timer);
  }, [said]);
  return html`
    <div class="announcer" role="status" aria-live="polite">${said?.text}</div>
    ${said && html`<div class="toast" aria-hidden="true" key=${said.at}>${said.text}</div>`}
  `;
}
