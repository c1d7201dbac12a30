// Pending and decided approvals: a tab of the inbox, and a panel on the right.
import { html, useEffect, useState } from "../../core/ui.js";
import { Empty } from "../../parts/empty.js";
import { useWatched } from "../../parts/watched.js";
import { later } from "../../texts-later.js";
import { t } from "../../texts.js";
import { ApprovalCard, ApprovalCards } from "./approval-card.js";

const words = later.approvals;
const PAGE = 20;
const MOST = 200; // the hub's limit per list

export function Approvals({ app }) {
  const [most, setMost] = useState(PAGE);
  const { more, problem } = useListed(app, most);
  const all = [...app.state.control.approvals.value.values()];
  const pending = all.filter(({ state }) => state === "pending").sort(by("asked_at", 1));
  const decided = all.filter(({ state }) => state !== "pending").sort(by("decided_at", -1)).slice(0, most);
  return html`
    <div class="approvals">
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      ${!pending.length && html`<${Empty} icon="hand" ...${words.empty} />`}
      <${List} app=${app} title=${words.pending} approvals=${pending} />
      <${List} app=${app} title=${words.decided} approvals=${decided} />
      ${more && most < MOST &&
      html`<button type="button" class="plain" onClick=${() => setMost(most + PAGE)}>${words.older}</button>`}
    </div>
  `;
}

const timeOf = (approval, name) => Date.parse(approval[name] ?? approval.expires_at);
const by = (name, sign) => (a, b) => sign * (timeOf(a, name) - timeOf(b, name));

function List({ app, title, approvals }) {
  if (!approvals.length) return null;
  return html`
    <section aria-label=${title}>
      <div class="section"><h2>${title}</h2></div>
      <${ApprovalCards} app=${app} approvals=${approvals} />
    </section>
  `;
}

/** Loads the hub's list. Later changes arrive as signals. */
function useListed(app, most) {
  const [state, setState] = useState({ more: false, problem: null });
  const isReady = app.status.value.state === "ready";
  useEffect(() => {
    if (!isReady) return;
    app.client.call("list_approvals", { state: "all", limit: most }).then(
      ({ approvals, more }) => {
        approvals.forEach((each) => app.state.control.note(each));
        setState({ more, problem: null });
      },
      (error) => setState({ more: false, problem: error.message }),
    );
  }, [most, isReady]);
  return state;
}

/** The panel of one approval, in any state. */
export function ApprovalPanel({ app, id }) {
  const { control } = app.state;
  const { error } = useWatched(async () => control.note(await app.client.call("read_approval", { id })), { key: id });
  const approval = control.approvals.value.get(id);
  if (approval) return html`<${ApprovalCard} key=${id} app=${app} approval=${approval} />`;
  return html`<p class="quiet" role="status">${error?.message ?? t.loading}</p>`;
}
