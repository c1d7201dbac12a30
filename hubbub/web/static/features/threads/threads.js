// The groups of threads in the left column.
import { membersOf } from "../../core/ids.js";
import { visible } from "../../core/markdown.js";
import { firstWords } from "../../core/messages.js";
import { html, useComputed, useState } from "../../core/ui.js";
import { Avatar } from "../../parts/avatar.js";
import { Badge } from "../../parts/badge.js";
import { Icon, iconOfThread } from "../../parts/icon.js";
import { Menu } from "../../parts/menu.js";
import { useMessage } from "../../parts/message-link.js";
import { Activity, Presence } from "../../parts/presence.js";
import { t } from "../../texts.js";
import { menuOf } from "./thread-menu.js";

/** The button right of a group's heading: {label, icon, command}. */
const TOOLS = {
  channels: [
    { label: t.sidebar.browse, icon: "compass", command: "channel-browse" },
    { label: t.sidebar.createChannel, icon: "plus", command: "channel-create" },
  ],
  direct: [{ label: t.sidebar.startDirect, icon: "plus", command: "direct-start" }],
};
const EMPTY = { channels: t.sidebar.noChannels, direct: t.sidebar.noDirect };

export function Threads({ app, column }) {
  return html`<div class="threads">
    <${Group} app=${app} column=${column} name="channels" />
    <${Group} app=${app} column=${column} name="direct" />
    <${Group} app=${app} column=${column} name="everyone" />
    <${Group} app=${app} column=${column} name="mods" />
  </div>`;
}

function Group({ app, column, name }) {
  const all = column.groups[name].value;
  const shown = column.shown[name].value;
  const folded = column.folded.value.has(name);
  const tools = TOOLS[name] ?? [];
  if (!all.length && !tools.length) return null;
  if (name === "everyone") {
    return html`<ul class="group">${shown.map((thread) => row(app, column, thread))}</ul>`;
  }
  const hidden = folded ? 0 : all.length - shown.length;
  return html`<section class="group" aria-label=${t.sidebar[name]}>
    <div class="section">
      <h2><button class="fold" aria-expanded=${!folded} onClick=${() => column.fold(name)}>
        ${t.sidebar[name]}<${Icon} name="down" size=${12} />
      </button></h2>
      ${tools.map((tool) => html`<button key=${tool.command} class="icon small" aria-label=${tool.label}
        title=${tool.label} onClick=${() => app.run(tool.command)}>
        <${Icon} name=${tool.icon} size=${16} />
      </button>`)}
    </div>
    <ul>${shown.map((thread) => row(app, column, thread))}</ul>
    ${!all.length && !folded && html`<p class="none">${EMPTY[name]}</p>`}
    ${(hidden > 0 || (column.all.value && name === "direct" && !folded)) &&
    html`<button class="plain small more" onClick=${() => (column.all.value = !column.all.value)}>
      ${hidden ? t.sidebar.more(hidden) : t.sidebar.fewer}
    </button>`}
  </section>`;
}

function row(app, column, thread) {
  return html`<${Row} key=${thread.id} app=${app} column=${column} thread=${thread} />`;
}

// A thread in the left column. Each row subscribes only to its own thread.

function Row({ app, column, thread, depth = 0 }) {
  const [armed, setArmed] = useState(false); // the menu is created on first hover or focus
  const arm = () => setArmed(true);
  const current = useComputed(() => app.here.value === thread.id).value;
  const title = useTitle(app, thread);
  const unread = thread.unread.value;
  const replies = column.repliesUnder(thread.id).value;
  const muted = useComputed(() => app.state.choiceIn(thread.id) === "muted").value;
  const looks = `list-row ${unread ? "unread" : ""} ${muted ? "muted" : ""}`;
  return html`<li class="thread" onPointerEnter=${arm} onFocusIn=${arm}>
    <a class=${looks} style=${{ "--depth": depth }} data-thread=${thread.id}
      title=${title} href=${app.router.href("thread", [thread.id])} aria-current=${current ? "page" : null}>
      <${Sign} app=${app} thread=${thread} />
      <span class="cut name" dir="auto">${thread.kind === "channel" ? title.replace(/^#/, "") : title}</span>
      <${Work} app=${app} column=${column} thread=${thread} />
      <${Marks} app=${app} thread=${thread} unread=${unread} />
    </a>
    ${armed && html`<${Menu} label=${t.sidebar.menu(title)} className="icon small row-menu"
      items=${() => menuOf(app, column, thread)} />`}
    ${replies.length > 0 && html`<ul>
      ${replies.map((reply) => html`<${Row} key=${reply.id} app=${app} column=${column} thread=${reply}
        depth=${depth + 1} />`)}
    </ul>`}
  </li>`;
}

/** The title of a thread; a reply thread is titled by its parent message. */
function useTitle(app, thread) {
  const seq = thread.repliesTo;
  const { message: replied } = useMessage(app, seq === null ? null : `m${seq}`);
  const named = useLabel(app, thread)?.title;
  if (seq === null) return app.state.titleOf(thread.id);
  if (named) return visible(named);
  return replied ? firstWords(replied, 60) : t.sidebar.repliesTo(`m${seq}`);
}

const useLabel = (app, thread) => useComputed(() => app.state.labels.value.get(thread.id)).value;

function Sign({ app, thread }) {
  const label = useLabel(app, thread);
  const others = membersOf(thread.id).filter((member) => member !== app.state.me.value);
  if (thread.parent !== null) {
    return html`<${Icon} name=${label?.icon ?? "reply"} size=${15} className="sign" />
      ${label?.note && html`<span class="hidden-text">${label.note}</span>`}`;
  }
  if (others.length === 1) {
    return html`<${Avatar} app=${app} id=${others[0]} size=${1.25} />
      <${Presence} app=${app} id=${others[0]} told=${true} />`;
  }
  const name = others.length ? "people" : iconOfThread(thread.kind);
  return html`<${Icon} name=${name} size=${17} className="sign" />`;
}

/** Its activity: the state of the only agent, otherwise a dot. */
function Work({ app, column, thread }) {
  const others = membersOf(thread.id).filter((member) => member !== app.state.me.value);
  const agents = useComputed(() => (column.working.value.get(thread.id) ?? []).join(", ")).value;
  if (others.length === 1 && thread.parent === null) {
    return html`<${Activity} app=${app} id=${others[0]} thread=${thread.id} />`;
  }
  if (!agents) return null;
  return html`<span class="presence busy" title=${t.sidebar.atWork(agents)}>
    <span class="hidden-text">${t.sidebar.atWork(agents)}</span>
  </span>`;
}

function Marks({ app, thread, unread }) {
  const mentions = thread.unreadMentions.value;
  const drafted = useComputed(() => app.drafts?.value.has(thread.id) ?? false).value;
  return html`
    ${drafted && html`<span class="drafted" title=${t.sidebar.draft}><${Icon} name="edit" size=${14} />
      <span class="hidden-text">${t.sidebar.draft}</span></span>`}
    ${mentions > 0 &&
    html`<${Badge} mention shown=${`@${mentions}`} told=${t.sidebar.mentions(mentions)} />`}
    ${unread > 0 &&
    html`<${Badge} shown=${unread > 999 ? "999+" : unread} told=${t.sidebar.unread(unread)} />`}
  `;
}
