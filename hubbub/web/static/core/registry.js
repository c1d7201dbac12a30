// What features add to the page. A feature is a function that gets the app and registers what it
// has; nothing else of the page knows it.
import { signal } from "../vendor/signals.js";

/** An ordered list that can be added to at any time; `items` is a signal. */
export class Slot {
  /** @param added  Told how to take back each thing that is added. */
  /** @param {(back: () => void) => void} added  Told of each item, with what takes it back. */
  constructor(added = () => {}) {
    this.items = signal([]);
    this.count = 0;
    this.added = added;
  }

  /** Returns how to take it back. `order` decides the place, low first; `key` tells it from others. */
  add(item) {
    const added = { order: 50, key: this.count++, ...item };
    this.items.value = [...this.items.peek(), added].sort((a, b) => a.order - b.order);
    const back = () => {
      this.items.value = this.items.peek().filter((each) => each !== added);
    };
    this.added(back);
    return back;
  }

  /** What there is for a menu in a context: those that are possible there. */
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

/** Where features can add something. Views are components: functions of props. */
export class Registry {
  constructor() {
    this.takers = null; // what is added while `during` runs
    const slot = () => new Slot((back) => this.takers?.push(back));
    /** Parts of the left column: {order, view: ({})} */
    this.sidebar = slot();
    /** Pages of the middle: {name, view: ({args}), title: (args) => string}; path `#/name/args…` */
    this.views = slot();
    /** Parts of the right column, by what is opened: {kind, order, title, view: ({id})} */
    this.panels = slot();
    /** Decorations of messages: {slot: "name" | "meta" | "below" | "action", order, view: ({message, thread})} */
    this.marks = slot();
    /** In the menu of a message: {order, title, icon?, keys?, danger?, when?(context), run(context)} */
    this.messageMenu = slot();
    /** In the menu of a thread, in its title and on the left; the same. */
    this.threadMenu = slot();
    /**
     * Messages whose content is for programs, shown in a way of its own: {of: (message) => boolean,
     * view: ({message})} in place of the text. The first that knows the message shows it.
     */
    this.bodies = slot();
    /** Attachments with a way of their own: {of: (attachment) => boolean, view: ({attachment})}, list items. */
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
     * What goes along with what is said in a thread (an id): {with(thread) => arguments of the operation,
     * said(thread), wait?(thread) => why it cannot be said yet, instead?(thread) => what is said where
     * nothing was written, back?(thread, args): what was said is written once more}
     */
    this.speech = slot();
    /** Beside what agents do in a thread, while they do: {order, view: ({thread, agents})} */
    this.work = slot();
    /** Tabs of the inbox: {name, title, order, count: () => number, view: ({})} */
    this.inbox = slot();
    /**
     * What one can do: {id, title, group?, keys?, slash?, hint?, icon?, menu?, when?(context),
     * run(context, rest)}.
     * `keys` like "mod+k", "alt+arrowup", "g i", "r"; `slash` is its name after "/" in the composer:
     * what it throws is said there, and the line stays.
     * `menu` is a number: its place in the reader's own menu. A context is {thread, message, text}
     * as far as there are any.
     */
    this.commands = slot();
    /** What the palette offers for whatever is typed: {title: (words) => string, icon, run(words)} */
    this.finders = slot();
    /** Completions while writing: {trigger: "@", suggest(word, thread) => [{value, label, hint}]} */
    this.completions = slot();
    /** In the bar at the top, on the right: {order, view: ({})} */
    this.bar = slot();
    /** In the settings: {title, order, view: ({})} */
    this.settings = slot();
    /** Above everything, for as long as somebody has joined (dialogs, mostly): {view: ({})} */
    this.layers = slot();
  }

  /** Run `add`, and return how to take back all that it adds meanwhile, and to call what it returns. */
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
