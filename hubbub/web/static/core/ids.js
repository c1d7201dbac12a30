// Ids of the protocol (docs/reference/protocol.md, "Thread ids").

const REPLY = /\.t[1-9][0-9]{0,17}$/;

/** The thread that a reply thread belongs to; null for other threads. */
export function parentOf(thread) {
  const match = REPLY.exec(thread);
  const up = match ? thread.slice(0, match.index) : "";
  return up.includes(".") || up === "broadcast" ? up : null;
}

export function rootOf(thread) {
  const up = parentOf(thread);
  return up === null ? thread : rootOf(up);
}

/** The position of the message that a reply thread belongs to; null for other threads. */
export function repliedSeq(thread) {
  return parentOf(thread) === null ? null : Number(thread.slice(thread.lastIndexOf(".t") + 2));
}

export function replyThread(thread, seq) {
  return `${thread}.t${seq}`;
}

/** Whether the text has the form of a thread id. */
export function isThread(id = "") {
  return /^(?:broadcast|(?:dm|channel|mod)\..+)$/.test(rootOf(id));
}

const RELATIVE = /^(direct|channel|mod)_([A-Za-z0-9_+-]+)((?:\.t[1-9][0-9]{0,17})*)$/;

/** The thread for a short form such as `direct_bob` or `channel_dev`, as seen by `me`; otherwise null. */
export function canonical(id = "", me) {
  const [, kind, name, replies] = RELATIVE.exec(id) ?? [];
  if (!kind) return null;
  return (kind === "direct" ? directThread(me, ...name.split("+")) : `${kind}.${name}`) + replies;
}

/** "direct", "channel", "broadcast" or "mod". */
export function kindOf(thread) {
  const head = thread.split(".", 1)[0];
  return head === "dm" ? "direct" : head;
}

/** The participants of a direct thread; empty for others. */
export function membersOf(thread) {
  const root = rootOf(thread);
  return root.startsWith("dm.") ? root.split(".").slice(1) : [];
}

export function directThread(...participants) {
  return `dm.${[...participants].sort(byCode).join(".")}`;
}

export function channelThread(name) {
  return `channel.${name}`;
}

/** The title of a thread as seen by `me`; `named(id)` returns a participant's name. */
export function titleOf(thread, me = null, named = (id) => id) {
  const root = rootOf(thread);
  const kind = kindOf(root);
  if (kind === "direct") {
    return membersOf(root).filter((member) => member !== me).map(named).join(", ") || named(me);
  }
  if (kind === "broadcast") return "Everyone";
  const name = root.slice(root.indexOf(".") + 1);
  return kind === "channel" ? `#${name}` : name;
}

function byCode(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
