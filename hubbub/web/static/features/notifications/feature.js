// Notifies a reader who is not looking at the page: tab title, tab icon, and the desktop if allowed.
import { effect, html } from "../../core/ui.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";
import { Notifier } from "./notifier.js";

export default function notifications(app) {
  const notifier = new Notifier(app);
  effect(() => (document.title = titleFor(app)));
  effect(() => showDot(waiting(app.state) > 0));
  effect(() => notifier.arrived(app.state.arrived.value));
  app.add.settings.add({
    title: t.notifications.title, order: 20, view: () => html`<${Permission} notifier=${notifier} />`,
  });
}

// Desktop notifications: a button that asks for permission, or a switch.

function Permission({ notifier }) {
  const permission = notifier.permission.value;
  if (permission === "unsupported") return html`<p class="quiet small">${t.notifications.unsupported}</p>`;
  if (permission === "denied") return html`<p class="quiet small">${t.notifications.denied}</p>`;
  if (permission === "default") {
    return html`<div class="line"><span>${t.notifications.what}</span>
      <button type="button" onClick=${() => notifier.ask()}>
        <${Icon} name="bell" size=${16} />${t.notifications.allow}
      </button>
    </div>`;
  }
  return html`<label class="option">
    <input type="checkbox" checked=${notifier.wanted.value}
      onChange=${(event) => (notifier.wanted.value = event.target.checked)} />
    ${t.notifications.what}
  </label>`;
}

// The title and icon of the tab.

/** "(3) #general · quickstart" */
function titleFor(app) {
  const network = app.state.network.value || app.about.network;
  if (!app.state.me.value) return network;
  const { view, args } = app.route.value;
  const here = app.add.views.find((each) => each.name === view)?.title?.(args);
  const count = waiting(app.state);
  return `${count ? `(${count}) ` : ""}${here ? `${here} · ` : ""}${network}`;
}

/** The icon with or without a dot. */
function showDot(shown) {
  /** @type {HTMLLinkElement} */
  const link = document.querySelector("link[rel=icon]");
  const wanted = link.href.replace(/icon(?:-dot)?\.svg$/, shown ? "icon-dot.svg" : "icon.svg");
  if (link.href !== wanted) link.href = wanted;
}

/** The count: unread mentions and direct messages, and pending approvals. */
function waiting(state) {
  let count = state.control.waiting.value.length;
  for (const thread of state.threads.value.values()) {
    const calls = thread.kind === "direct" && state.choiceIn(thread.id) !== "muted";
    count += calls ? thread.unread.value : thread.unreadMentions.value;
  }
  return count;
}
