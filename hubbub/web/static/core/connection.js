// Shows the connection's status when it is not ready, and decides when to check it.
import { html, useEffect, useState } from "./ui.js";
import { t } from "../texts.js";
import { Icon } from "../parts/icon.js";

const PROBE_AFTER_MS = 60_000; // hidden for longer: the socket may be dead
const CALM_MS = 600; // shorter interruptions are not shown

/** Connect as soon as the network is back, and check the socket when the reader returns to the page. */
export function watchConnection(client, target = window, now = Date.now) {
  let hiddenAt = 0;
  target.addEventListener("online", () => client.retry());
  target.addEventListener("offline", () => client.probe());
  target.document.addEventListener("visibilitychange", () => {
    if (target.document.hidden) {
      hiddenAt = now();
      return;
    }
    client.retry();
    if (hiddenAt && now() - hiddenAt > PROBE_AFTER_MS) client.probe();
  });
}

export function ConnectionState({ app }) {
  const status = app.status.value;
  const [late, setLate] = useState(false);
  const moving = status.state === "ready" && app.state.moving.value;
  const state = moving ? "moving" : status.state;
  const ready = state === "ready";
  useEffect(() => {
    setLate(false);
    if (ready) return undefined;
    const timer = setTimeout(() => setLate(true), CALM_MS);
    return () => clearTimeout(timer);
  }, [ready]);
  if (ready || !late) return html`<p class="connection" role="status"></p>`;
  const words = (status.state === "refused" && status.reason) || t.connection[state];
  return html`
    <p class="connection" role="status" data-state=${state}>
      ${state === "connecting" || moving
        ? html`<span class="spinner" aria-hidden="true"></span>`
        : html`<${Icon} name="warning" size=${16} />`}
      <span>${words}</span>
      ${status.until && html`<${Countdown} until=${status.until} />`}
      ${status.state === "waiting" &&
      html`<button class="plain small" onClick=${() => app.client.retry()}>${t.retryNow}</button>`}
      ${status.state === "refused" &&
      html`<button class="plain small" onClick=${() => app.run("leave-network")}>
        ${t.connection.joinAnew}
      </button>`}
    </p>
  `;
}

/** Seconds left; not announced to screen readers, since it changes constantly. */
function Countdown({ until }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.ceil((until - now) / 1000);
  return seconds > 0 && html`<time aria-hidden="true">${t.connection.again(seconds)}</time>`;
}
