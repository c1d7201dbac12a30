// Converts text of people and agents to safe elements: Markdown in, a sanitised fragment out. The work
// is bounded for any text: see tests/browser/js/markdown.test.js.
import { Marked } from "../vendor/marked.js";
import DOMPurify from "../vendor/purify.js";

const TAGS = (
  "p br hr em strong del code pre blockquote ul ol li h3 h4 h5 h6 table thead tbody tr th td a"
).split(" ");
const ATTRIBUTES = ["href", "title", "class", "start", "align"];
const LINKS = /^(?:https?:\/\/|mailto:|#)/i;
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;

// The parser is quadratic in some of these, and others use up its stack. Beyond the limits the text is
// shown unparsed.
const LONGEST = 8 * 1024;
const MOST_DELIMITERS = 1500;
const MOST_FENCES = 100;
const DEEPEST = 10; // nested quotes and lists

let above = 2; // the level of the previous heading, while a text is parsed

const marked = new Marked({ gfm: true, breaks: true, async: false });
marked.use({
  renderer: {
    // No raw HTML, and no remote images: they would reveal the reader.
    html: ({ text }) => escaped(text),
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    code: ({ text, lang }) => {
      const name = (lang ?? "").split(/\s/, 1)[0];
      return `<pre><code class="lang-${escaped(name)}">${escaped(text)}</code></pre>`;
    },
    // The page's own headings are above these, and no level is skipped.
    heading({ tokens, depth }) {
      const level = (above = Math.min(6, depth + 2, above + 1));
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    const href = node.getAttribute("href") ?? "";
    if (!LINKS.test(href)) node.removeAttribute("href");
    else if (!href.startsWith("#")) {
      node.setAttribute("target", "_blank");
      node.setAttribute("rel", "noopener noreferrer nofollow");
    }
  }
  if (node.hasAttribute("class") && !/^lang-[\w+#.-]+$/.test(node.className)) {
    node.removeAttribute("class");
  }
});

/** Characters that change the text direction are shown, not applied. */
export function visible(text) {
  return text.replace(DIRECTIONS, (char) => `\\u${char.charCodeAt(0).toString(16)}`);
}

/** A DocumentFragment for `text`. */
export function fragment(text) {
  const shown = visible(text);
  return (isTooMuch(shown) ? null : parsed(shown)) ?? plain(shown);
}

function parsed(text) {
  let dirty;
  above = 2;
  try {
    dirty = marked.parse(indented(shallow(text)));
  } catch (error) {
    if (error instanceof RangeError) return null; // stack overflow
    throw error;
  }
  return DOMPurify.sanitize(dirty, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}

const FENCE = /^ {0,3}(?:```|~~~)/gm;
const CODE = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))[^\n]*\n(?:[^\n]*\n)*?(?: {0,3}\1[`~]*[ \t]*$|(?![^]))/gm;

function isTooMuch(text) {
  if (timesIn(text, FENCE) > MOST_FENCES) return true;
  const prose = text.replace(CODE, ""); // code is cheap to parse at any length
  return prose.length > LONGEST || timesIn(prose, /[*_~[]/g) > MOST_DELIMITERS;
}

const timesIn = (text, pattern) => text.match(pattern)?.length ?? 0;

/** Plain text with its line breaks. */
function plain(text) {
  const made = document.createDocumentFragment();
  const paragraph = document.createElement("p");
  paragraph.className = "plain";
  paragraph.textContent = text;
  made.append(paragraph);
  return made;
}

const NESTED = /^(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))){11,}.*$/gm;
const MARKER = />|[-*+](?=[ \t])|\d{1,9}(?=[.)][ \t])/g;
const RULE = /^[ \t]*([-*])(?:[ \t]*\1)+[ \t]*$/;

/** Quotes and lists nested beyond the limit become text. */
function shallow(text) {
  return text.replace(NESTED, (line) => {
    if (RULE.test(line)) return line;
    let seen = 0;
    return line.replace(MARKER, (marker) => (++seen === DEEPEST + 1 ? literal(marker) : marker));
  });
}

const BLOCK = /^[ \t]*(?:[-+*>#|]|\d{1,9}[.)])/;
const FENCED = /^ {0,3}(`{3,}|~{3,})/;

/** Keep the indentation of paragraph lines, which Markdown would remove. */
function indented(text) {
  let inside = null; // "paragraph", "block", or the fence of code; null after an empty line
  const lines = text.split("\n").map((line) => {
    const fence = FENCED.exec(line)?.[1];
    if (/^[`~]/.test(inside ?? "")) {
      if (fence?.startsWith(inside)) inside = null;
    } else if (fence) inside = fence;
    else if (!line.trim()) inside = null;
    else if (BLOCK.test(line)) inside = "block";
    else if (!/^[ \t]/.test(line)) inside ??= "paragraph";
    else if (inside === "paragraph") return line.replace(/^[ \t]+/, unbroken);
    else inside ??= "block";
    return line;
  });
  return lines.join("\n");
}

const unbroken = (gap) => gap.replaceAll("\t", "    ").replaceAll(" ", "\u00a0");

const literal = (marker) => (/\d/.test(marker) ? `\u2060${marker}` : `\\${marker}`);

function escaped(text) {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
