// Who is writing here, and how one reaches agents at work in this thread: one line above the composer,
// always there, so that nothing jumps.
import { html, useEffect, useState } from "../../core/ui.js";
import { t } from "../../texts.js";

export function Doing({ app, thread }) {
  const writing = useWriting(app, thread);
  const agents = app.state.control.workIn(thread.id);
  return html`
    <div class="doing">
      <p class="cut" aria-hidden="true">${writing.length > 0 && t.composer.typing(writing)}</p>
      ${agents.length > 0 &&
      app.add.work.items.value.map(
        (part, n) => html`<${part.view} key=${n} app=${app} thread=${thread} agents=${agents} />`,
      )}
      <div class="hidden-text" role="status">${spoken(app, agents, writing)}</div>
    </div>
  `;
}

/** Without the seconds: it is read out whenever it changes. */
function spoken(app, agents, writing) {
  const does = ([id, { state, tool }]) => t.composer.does(app.state.nameOf(id), t.activity[state]?.(tool) ?? state);
  const parts = agents.map(does);
  if (writing.length) parts.push(t.composer.typing(writing));
  return parts.join(". ");
}

/** Those who have told lately that they write. */
function useWriting(app, thread) {
  const [, look] = useState(0);
  const now = Date.now();
  const all = [...(app.state.typing.value.get(thread.id) ?? [])].filter(
    ([id, until]) => until > now && id !== app.state.me.value,
  );
  const next = Math.min(...all.map(([, until]) => until));
  useEffect(() => {
    if (!all.length) return undefined;
    const timer = setTimeout(() => look((n) => n + 1), next - Date.now() + 20);
    return () => clearTimeout(timer);
  }, [next]);
  return all.map(([id]) => app.state.nameOf(id));
}
