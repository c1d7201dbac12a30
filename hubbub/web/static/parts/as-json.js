// A value as JSON, rendered when opened.
import { html, useEffect, useRef, useState } from "../core/ui.js";
import { highlight } from "./highlight.js";

/** `text` returns it. */
export function AsJson({ title, text }) {
  const [open, setOpen] = useState(false);
  return html`<details class="json" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${title}</summary>${open && html`<${Json} text=${text()} />`}</details>`;
}

function Json({ text }) {
  const code = useRef(null);
  useEffect(() => {
    code.current.textContent = text; // highlighting replaces the text by spans
    highlight(code.current, "json");
  }, [text]);
  return html`<pre tabindex="0"><code ref=${code}></code></pre>`;
}
