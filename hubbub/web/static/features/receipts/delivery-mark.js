// A small mark on one's own messages: stored, or delivered to everybody who is here.
import { html } from "../../core/ui.js";
import { deliveryOf } from "../../core/delivery.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";

const NAMED = 6;

export function Delivery({ app, message }) {
  if (message.sender_id !== app.state.me.value) return null;
  const { state, reached, waiting } = deliveryOf(app.state, message);
  const words = inWords(app, reached, waiting);
  return html`<button type="button" class="delivery" tabindex="-1" title=${words} aria-label=${words}
    onClick=${() => app.open("message", message.id)}>
    <${Icon} name=${state === "delivered" ? "checks" : "check"} size=${14} />
  </button>`;
}

/** "Delivered to bob, calculator · waiting for carol (away)" */
function inWords(app, reached, waiting) {
  const away = (id) => (app.state.participant(id)?.present ? id : t.receipts.away(id));
  return [
    reached.length ? t.receipts.delivered(some(reached)) : t.receipts.stored,
    waiting.length ? t.receipts.waiting(some(waiting.map(away))) : "",
  ].filter(Boolean).join(" · ");
}

function some(names) {
  if (names.length <= NAMED) return names.join(", ");
  return t.receipts.andMore(names.slice(0, NAMED).join(", "), names.length - NAMED);
}
