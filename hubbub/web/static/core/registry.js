// What features add to the page. A feature is a function that gets the app and registers what it
// has; nothing else of the page knows it.
import { signal } from "../vendor/signals.js";

/** An ordered list that can be added to at any time; `items` is a signal. */
export class Slot {
  constructor() {
    this.items = signal([]);
  }

  /** Returns how to take it back. `order` decides the place, low first. */
  add(item) {
    const added = { order: 50, ...item };
    this.items.value = [...this.items.peek(), added].sort((a, b) => a.order - b.order);
    return () => {
      this.items.value = this.items.peek().filter((each) => each !== added);
    };
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
    /** Parts of the left column: {order, view: ({})} */
    this.sidebar = new Slot();
    /** Pages of the middle: {name, view: ({args}), title: (args) => string}; path `#/name/args…` */
    this.views = new Slot();
    /** Parts of the right column, by what is opened: {kind, order, title, view: ({id})} */
    this.panels = new Slot();
    /** Decorations of messages: {slot: "name" | "meta" | "below" | "action", order, view: ({message, thread})} */
    this.marks = new Slot();
    /** Beside the title of a thread: {order, view: ({thread})} */
    this.tools = new Slot();
    /** Above the composer: {order, view: ({thread})} */
    this.notes = new Slot();
    /** Below the conversation, the composer: {order, view: ({thread})} */
    this.foot = new Slot();
    /** Beside what agents do in a thread, while they do: {order, view: ({thread, agents})} */
    this.work = new Slot();
    /** Tabs of the inbox: {name, title, order, count: () => number, view: ({})} */
    this.inbox = new Slot();
    /**
     * What one can do: {id, title, group?, keys?, slash?, hint?, icon?, menu?, when?(context),
     * run(context, rest)}.
     * `keys` like "mod+k", "alt+arrowup", "g i", "r"; `slash` is its name after "/" in the composer:
     * what it throws is said there, and the line stays.
     * `menu` is a number: its place in the reader's own menu. A context is {thread, message, text}
     * as far as there are any.
     */
    this.commands = new Slot();
    /** Completions while writing: {trigger: "@", suggest(word, thread) => [{value, label, hint}]} */
    this.completions = new Slot();
    /** In the bar at the top, on the right: {order, view: ({})} */
    this.bar = new Slot();
    /** In the settings: {title, order, view: ({})} */
    this.settings = new Slot();
    /** Above everything, for as long as somebody has joined (dialogs, mostly): {view: ({})} */
    this.layers = new Slot();
  }
}
