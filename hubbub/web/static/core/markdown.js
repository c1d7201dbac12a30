// What people and agents write, as HTML that can do no harm: Markdown in, sanitised HTML out.
import { Marked } from "../vendor/marked.js";
import DOMPurify from "../vendor/purify.js";

const TAGS = (
  "p br hr em strong del code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 table thead tbody tr th td a span input"
).split(" ");
const ATTRIBUTES = ["href", "title", "class", "start", "align", "type", "checked", "disabled"];
const LINKS = /^(?:https?:|mailto:|#)/i;
const LONGEST = 64 * 1024; // what is longer is shown as it is: parsing it would hold up the page
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;

const marked = new Marked({ gfm: true, breaks: true, async: false });
marked.use({
  renderer: {
    // Nobody's markup, and no pictures from elsewhere: they would tell who reads.
    html: ({ text }) => escaped(text),
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    code: ({ text, lang }) =>
      `<pre><code class="lang-${escaped((lang ?? "").split(/\s/)[0])}">${escaped(text)}</code></pre>`,
  },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    if (!LINKS.test(node.getAttribute("href") ?? "")) node.removeAttribute("href");
    else if (!node.getAttribute("href").startsWith("#")) {
      node.setAttribute("target", "_blank");
      node.setAttribute("rel", "noopener noreferrer nofollow");
    }
  }
  if (node.tagName === "INPUT") {
    if (node.getAttribute("type") === "checkbox") node.setAttribute("disabled", "");
    else node.remove();
  }
  if (node.hasAttribute?.("class") && !/^lang-[\w+#-]*$|^mention$/.test(node.className)) {
    node.removeAttribute("class");
  }
});

/** Characters that turn the direction of text are shown, not obeyed. */
export function visible(text) {
  return text.replace(DIRECTIONS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Sanitised HTML (TrustedHTML where the browser has it) of a message's text. */
export function render(text) {
  const shown = visible(text);
  const dirty = shown.length > LONGEST ? `<p>${escaped(shown)}</p>` : marked.parse(shown);
  return DOMPurify.sanitize(dirty, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    RETURN_TRUSTED_TYPE: true,
  });
}

function escaped(text) {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
