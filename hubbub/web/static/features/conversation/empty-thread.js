// An empty conversation: its description and suggestions for a start.
import { kindOf, membersOf } from "../../core/ids.js";
import { visible } from "../../core/markdown.js";
import { html } from "../../core/ui.js";
import { Empty } from "../../parts/empty.js";
import { iconOfThread } from "../../parts/icon.js";
import { mention } from "../../parts/text-fields.js";
import { t } from "../../texts.js";

const MOST = 4;
const words = t.conversation.nothing;

export function EmptyThread({ app, thread }) {
  const kind = thread.parent ? "reply" : kindOf(thread.id);
  const title = app.state.titleOf(thread.id);
  const { members = membersOf(thread.id) } = app.state.channels.value.get(thread.root.replace("channel.", "")) ?? {};
  const agents = members.map((id) => app.state.participant(id)).filter((each) => each?.kind === "agent");
  const [one] = agents;
  const examples = kind === "direct" && agents.length === 1 ? (one.card?.examples ?? []).slice(0, MOST) : [];
  const text = examples.length ? one.card.description : kind === "channel" && agents.length > 0 ? words.agents : null;
  return html`<${Empty} icon=${thread.parent ? "reply" : iconOfThread(kind)} title=${(words[kind] ?? words.other)(title)}
    text=${text}>
    <div class="buttons">
      ${examples.map((example) => html`<button type="button" key=${example} dir="auto"
        onClick=${() => app.send(thread.id, example)}>${visible(example)}</button>`)}
      ${kind === "channel" && agents.slice(0, MOST).map(({ id }) => html`<button type="button" key=${id}
        onClick=${() => mention(id)}>${t.wakes.ask(app.state.nameOf(id))}</button>`)}
    </div>
  <//>`;
}
