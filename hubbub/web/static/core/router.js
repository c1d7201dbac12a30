// The location in the address: `#/thread/channel.general/m42?open=turn:bot-m3` is the view `thread`
// with its arguments, and the open panel on the right. Back and forward work, links can be copied, and
// addresses contain no secrets.
import { newCid } from "../sdk/client.js";
import { signal } from "../vendor/signals.js";

export class Router {
  constructor(window_ = window) {
    this.window = window_;
    this.route = signal(parse(window_.location.hash));
    this.again = signal(0); // counts navigations to the current address
    this.visit = null; // id of the current entry of the browser's history
    this.places = new Map(); // visit -> where its reader was, to return there with Back
    this.arrive();
    window_.addEventListener("hashchange", () => {
      this.arrive();
      this.route.value = parse(window_.location.hash);
    });
    window_.addEventListener("click", (event) => {
      const hash = /** @type {Element} */ (event.target).closest?.("a")?.hash;
      if (hash && !event.defaultPrevented) this.asked(parse(hash));
    });
  }

  /** Handle a navigation to the current address, for which browsers fire no event. */
  asked({ view, args, open }) {
    const here = this.route.peek();
    if (!open && this.href(view, args) === this.href(here.view, here.args)) this.again.value++;
  }

  /** The address of a view; without `open`, no panel is open. */
  href(view, args = [], open = null) {
    const path = [view, ...args].map(encodeURIComponent).join("/");
    return `#/${path}${open ? `?open=${open.kind}:${encodeURIComponent(open.id)}` : ""}`;
  }

  go(view, args = [], { open = null, replace = false } = {}) {
    this.asked({ view, args, open });
    this.put(view, args, open, replace);
  }

  put(view, args, open, replace = false) {
    const hash = this.href(view, args, open);
    if (replace) {
      this.window.history.replaceState({ visit: this.visit }, "", hash);
      this.route.value = parse(hash);
    } else {
      this.window.location.hash = hash;
      this.arrive();
      this.route.value = parse(hash);
    }
  }

  /** The browser keeps the id with the entry; after Back it is that of the earlier visit. */
  arrive() {
    const { history } = this.window;
    if (!history.state?.visit) history.replaceState({ visit: newCid() }, "");
    this.visit = history.state.visit;
  }

  /** Open the panel `kind` `id` at the current location; null closes it. */
  open(kind, id) {
    const { view, args } = this.route.peek();
    this.put(view, args, kind ? { kind, id } : null);
  }
}

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...args] = path.split("/").map(decode);
  const [kind, ...id] = (new URLSearchParams(query).get("open") ?? "").split(":");
  return { view, args, open: kind ? { kind, id: id.join(":") } : null };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
