// References in a text as links: @participants, #channels, messages (m42), turns (editor-m42),
// documents (d1), tasks (t1) and files (f1).

const REFERENCE =
  /(?<![\w@#./-])(?:([@#])([A-Za-z0-9_-]{1,64})|((?:[A-Za-z0-9_-]{1,64}-m|[mdtf])[1-9]\d{0,17})(?![\w@.-]*\w))/g;
const MOST = 200; // per text
const NOT_IN = "a, code, pre, button";

/**
 * Replaces references below `root` with links.
 * @param {{me: string, isParticipant: (id) => boolean, isChannel: (name) => boolean, panelOf: (id) => string | null}}
 *   names  `panelOf`: the kind of panel that shows this id, if the reader can see it.
 */
export function linkReferences(root, names) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts = /** @type {Text[]} */ ([]);
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    if (/[@#mdtf]/.test(node.data) && !node.parentElement?.closest(NOT_IN)) texts.push(node);
  }
  let left = MOST;
  for (const node of texts) {
    const parts = [];
    let done = 0;
    for (const match of node.data.matchAll(REFERENCE)) {
      const made = left > 0 && reference(match, names);
      if (!made) continue;
      left--;
      parts.push(node.data.slice(done, match.index), made);
      done = match.index + made.textContent.length;
    }
    if (parts.length) node.replaceWith(...parts, node.data.slice(done));
  }
}

function reference(/** @type {string[]} */ [, sign, name, id], names) {
  if (/^m\d/.test(id)) return link(id, `#/message/${id}`, { goto: id });
  if (id) {
    const kind = names.panelOf(id);
    return kind && link(id, kind === "document" ? `#/document/${id}` : `#/?open=${kind}:${id}`, { panel: kind });
  }
  if (sign === "@") {
    const id = known(name, names.isParticipant);
    return id && mention(id, id === names.me);
  }
  const channel = known(name, names.isChannel);
  return channel && link(`#${channel}`, `#/thread/channel.${channel}`);
}

/** The name without trailing punctuation, if it exists. */
function known(name, is) {
  for (let word = name; word; word = word.slice(0, -1)) {
    if (is(word)) return word;
    if (!/[-_]$/.test(word)) return null;
  }
  return null;
}

function link(text, href, data = {}) {
  const made = document.createElement("a");
  made.className = "reference";
  made.dir = "ltr"; // within text of another direction, "@" would move behind the name
  made.href = href;
  made.textContent = text;
  Object.assign(made.dataset, data);
  return made;
}

function mention(id, isMine) {
  const made = document.createElement("button");
  made.type = "button";
  made.dir = "ltr";
  made.className = isMine ? "mention mine" : "mention";
  made.textContent = `@${id}`;
  made.dataset.participant = id;
  return made;
}
