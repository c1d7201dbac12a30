// How it stands with the hub, where that is not as it should be; and when to look.
import { html, useEffect, useState } from "./ui.js";
import { t } from "../texts.js";
import { Icon } from "../parts/icon.js";

const PROBE_AFTER_MS = 60_000; // hidden for longer: who knows what has become of the socket
const CALM_MS = 600; // what is mended sooner is not worth a word

/** Connect as soon as there is a network again, and look after the socket when one comes back. */
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

/** Seconds that are left; not read out, it would never end. */
function Countdown({ until }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.ceil((until - now) / 1000);
  return seconds > 0 && html`<time aria-hidden="true">${t.connection.again(seconds)}</time>`;
}
