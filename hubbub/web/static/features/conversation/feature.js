// The conversation in the middle, and commands on its messages.
import { html, useLayoutEffect } from "../../core/ui.js";
import { canonical, isThread } from "../../core/ids.js";
import { textOf } from "../../core/messages.js";
import { useMessage } from "../../parts/message-link.js";
import { t } from "../../texts.js";
import { Conversation } from "./conversation.js";

export default function conversation(app) {
  const shown = { log: null }; // the log in the middle, for commands
  app.add.views.add({
    name: "thread",
    view: ({ args: [id, at] }) =>
      isThread(id)
        ? html`<${Conversation} key=${id} app=${app} id=${id} at=${at} shown=${shown} />`
        : html`<${Relative} app=${app} id=${id} at=${at} />`,
    title: ([id]) =>
      isThread(id) ? (app.state.labels.value.get(id)?.title ?? app.state.titleOf(id)) : "",
  });
  app.add.views.add({ name: "message", view: Elsewhere, title: ([id]) => id });
  addMoving(app, shown);
  addDoing(app);
}

/** `#/thread/channel_general`, the form that agents see, redirects to that thread. */
function Relative({ app, id, at }) {
  const meant = canonical(id, app.state.me.value);
  useLayoutEffect(() => {
    if (meant) app.router.go("thread", at ? [meant, at] : [meant], { replace: true });
  }, [meant]);
  return html`<div class="empty"><p>${meant ? t.loading : t.conversation.noThread(id)}</p></div>`;
}

/** `#/message/m42` redirects to the message in its thread. */
function Elsewhere({ app, args: [id] }) {
  const { message, problem } = useMessage(app, id);
  useLayoutEffect(() => {
    if (problem) app.say(problem);
    if (message) app.router.go("thread", [message.thread_id, id], { replace: true });
    else if (problem) app.router.go("", [], { replace: true });
  }, [message, problem]);
  return html`<div class="empty" role="status">${t.conversation.looking(id)}</div>`;
}

function addMoving(app, shown) {
  const when = () => shown.log !== null;
  const group = t.conversation.group;
  const add = (id, keys, run) =>
    app.add.commands.add({ id, title: t.conversation.commands[id], group, keys, when, run });
  add("next-message", "j", () => shown.log.step(1));
  add("previous-message", "k", () => shown.log.step(-1));
  add("last-message", ["end", "shift+g"], () => shown.log.toEnd());
  add("my-last-message", [], () => {
    const mine = shown.log.lastMine();
    if (mine) shown.log.focusOn(mine.tseq);
  });
}

function addDoing(app) {
  const when = ({ message }) => message !== null;
  const group = t.conversation.group;
  const add = (id, keys, run) =>
    app.add.commands.add({ id, title: t.conversation.commands[id], group, keys, when, run });
  add("copy-link", "c", ({ message }) => {
    const hash = app.router.href("thread", [message.thread_id, message.id]);
    app.copy(`${location.origin}${location.pathname}${hash}`, t.conversation.linkCopied);
  });
  add("copy-text", [], ({ message }) => app.copy(textOf(message), t.conversation.textCopied));
  add("mark-unread", "u", ({ message }) => app.unreadFrom(message.thread_id, message.tseq));
  add("message-details", "d", ({ message }) => app.open("message", message.id));
}
