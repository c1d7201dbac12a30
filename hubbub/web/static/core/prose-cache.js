// A cache of drawn texts: parsing is the most expensive part of a conversation.
import { Budget } from "./budget.js";
import { fragment } from "./markdown.js";
import { agentOf } from "./messages.js";
import { linkReferences } from "./references.js";

const MOST = 400; // texts
const MOST_CHARACTERS = 1_000_000; // in all texts

export class ProseCache {
  /** @param names  The things that texts can refer to; see references.js. */
  constructor(names) {
    this.names = names;
    this.kept = new Map(); // text -> DocumentFragment, least recently used first
    this.characters = 0;
    this.budget = new Budget();
  }

  has(text) {
    return this.kept.has(text);
  }

  /** The fragment itself: clone it before changing it for one place. */
  get(text) {
    let made = this.kept.get(text);
    if (made) {
      this.kept.delete(text);
      this.link(made);
    } else {
      made = fragment(text);
      this.link(made);
      this.characters += text.length;
    }
    this.kept.set(text, made);
    this.forget();
    return made;
  }

  /** Link names below `root` that were unknown when it was drawn. */
  link(root) {
    linkReferences(root, this.names);
  }

  forget() {
    for (const text of this.kept.keys()) {
      if (this.kept.size <= MOST && this.characters <= MOST_CHARACTERS) return;
      this.kept.delete(text);
      this.characters -= text.length;
    }
  }
}

const PANELS = { d: ["document", "list_documents"], t: ["task", "list_boards"], f: ["file", "list_files"] };

/** The kind of panel for an id, if the hub has such items. */
function panelOf(app, id) {
  const agent = agentOf(id);
  if (agent) return app.state.owner.peek() && app.state.participants.peek().has(agent) ? "turn" : null;
  const [kind, operation] = PANELS[id[0]] ?? [];
  return kind && app.client.may(operation) ? kind : null;
}

const ofApps = new WeakMap(); // App -> {me, cache}

/** The cache of the page, for the current reader. */
export function proseCacheOf(app) {
  const me = app.state.me.peek();
  let found = ofApps.get(app);
  if (found?.me !== me) {
    const names = {
      me,
      isParticipant: (id) => app.state.participants.peek().has(id),
      isChannel: (name) => app.state.channels.peek().has(name),
      panelOf: (id) => panelOf(app, id),
    };
    found = { me, cache: new ProseCache(names) };
    ofApps.set(app, found);
  }
  return found.cache;
}
