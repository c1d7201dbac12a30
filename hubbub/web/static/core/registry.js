// Extension points of the page. A feature is a function that gets the app and registers its parts; no
// other code knows it.
import { signal } from "../vendor/signals.js";

/** An ordered list that can change at any time; `items` is a signal. */
export class Slot {
  /** @param {(back: () => void) => void} added  Gets a function that removes each added item. */
  constructor(added = () => {}) {
    this.items = signal([]);
    this.count = 0;
    this.added = added;
  }

  /** Returns a function that removes the item. `order` is its place, low first; `key` identifies it. */
  add(item) {
    const added = { order: 50, key: this.count++, ...item };
    this.items.value = [...this.items.peek(), added].sort((a, b) => a.order - b.order);
    const back = () => {
      this.items.value = this.items.peek().filter((each) => each !== added);
    };
    this.added(back);
    return back;
  }

  /** Menu items that apply in a context. */
  offered(context) {
    return this.items.value
      .filter(({ when }) => !when || when(context))
      .map((item) => ({ ...item, run: () => item.run(context) }));
  }

  find(test) {
    return this.items.value.find(test);
  }

  [Symbol.iterator]() {
    return this.items.value[Symbol.iterator]();
  }
}

/** The extension points. Views are components: functions of props. */
export class Registry {
  constructor() {
    this.takers = null; // collects the items added while `during` runs
    const slot = () => new Slot((back) => this.takers?.push(back));
    /** Parts of the left column: {order, view: ({})} */
    this.sidebar = slot();
    /** Pages of the middle: {name, view: ({args}), title: (args) => string}; path `#/name/args…` */
    this.views = slot();
    /** Parts of the right column, by kind of open item: {kind, order, title, view: ({id})} */
    this.panels = slot();
    /** Decorations of messages: {slot: "name" | "meta" | "below" | "action", order, view: ({message, thread})} */
    this.marks = slot();
    /** In the menu of a message: {order, title, icon?, keys?, danger?, when?(context), run(context)} */
    this.messageMenu = slot();
    /** In the menu of a thread, in its title and on the left; the same. */
    this.threadMenu = slot();
    /**
     * Messages with content for programs, shown in their own way: {of: (message) => boolean,
     * view: ({message})} in place of the text. The first match wins.
     */
    this.bodies = slot();
    /** Attachments shown in their own way: {of: (attachment) => boolean, view: ({attachment})}, list items. */
    this.attachments = slot();
    /** Signals of the hub: {type: "mod.x", take(frame)} */
    this.signals = slot();
    /** Beside the title of a thread: {order, view: ({thread})} */
    this.tools = slot();
    /** Above the composer: {order, view: ({thread})} */
    this.notes = slot();
    /** Below the conversation, the composer: {order, view: ({thread})} */
    this.foot = slot();
    /** Beside the button that sends: {order, view: ({thread})} */
    this.writing = slot();
    /**
     * Additions to messages sent to a thread (an id): {with(thread) => arguments of the operation,
     * said(thread), wait?(thread) => why it cannot be sent yet, instead?(thread) => the text if none was
     * written, back?(thread, args): the message was refused and is in the composer again}
     */
    this.speech = slot();
    /** Beside the activity of agents in a thread: {order, view: ({thread, agents})} */
    this.work = slot();
    /** Tabs of the inbox: {name, title, order, count: () => number, view: ({})} */
    this.inbox = slot();
    /**
     * Commands: {id, title, group?, keys?, slash?, hint?, icon?, menu?, when?(context),
     * run(context, rest)}.
     * `keys` such as "mod+k", "alt+arrowup", "g i", "r"; `slash` is its name after "/" in the composer:
     * an exception is shown there, and the line stays.
     * `menu` is a number: its place in the reader's own menu. A context has {thread, message, text}, if
     * there are any.
     */
    this.commands = slot();
    /** Palette entries for any input: {title: (words) => string, icon, run(words)} */
    this.finders = slot();
    /** Completions in the composer: {trigger: "@", suggest(word, thread) => [{value, label, hint}]} */
    this.completions = slot();
    /** In the bar at the top, on the right: {order, view: ({})} */
    this.bar = slot();
    /** In the settings: {title, order, view: ({})} */
    this.settings = slot();
    /** Above everything after joining, mostly dialogs: {view: ({})} */
    this.layers = slot();
  }

  /** Run `add`. Returns a function that removes all it added and calls the function it returned. */
  during(add) {
    const takers = (this.takers = []);
    let end;
    try {
      end = add();
    } finally {
      this.takers = null;
    }
    return () => {
      takers.forEach((back) => back());
      end?.();
    };
  }
}
