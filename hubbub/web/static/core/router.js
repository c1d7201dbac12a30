// The location in the address: `#/thread/channel.general/m42?open=turn:bot-m3` is the view `thread`
// with its arguments, and the open panel on the right. Back and forward work, links can be copied, and
// addresses contain no secrets.
import { signal } from "../vendor/signals.js";

export class Router {
  constructor(window_ = window) {
    this.window = window_;
    this.route = signal(parse(window_.location.hash));
    this.again = signal(0); // counts navigations to the current address
    window_.addEventListener("hashchange", () => {
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
      this.window.history.replaceState(null, "", hash);
      this.route.value = parse(hash);
    } else {
      this.window.location.hash = hash;
      this.route.value = parse(hash);
    }
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
