// A dialog over the page: modal, closed by Escape, by its cross, or by a click beside it.
import { html, useEffect, useLayoutEffect, useRef } from "../core/ui.js";
import { t } from "../texts.js";
import { Icon } from "./icon.js";

/**
 * Shown for as long as it is drawn; `close` is asked to stop drawing it. What was focused before
 * is focused again afterwards, unless something else is. `[data-focus]` inside gets the focus first.
 */
export function Dialog({ title, close, className = "", bare = false, children }) {
  const dialog = useRef(null);
  const before = useRef(null);
  useLayoutEffect(() => {
    before.current = document.activeElement;
    dialog.current.showModal();
    dialog.current.querySelector("[data-focus]")?.focus();
  }, []);
  // Not of the effect above: that one is undone while the dialog still has the focus.
  useEffect(() => () => document.activeElement === document.body && before.current?.isConnected
    && before.current.focus(), []);
  const beside = (event) => event.target === dialog.current && close();
  return html`<dialog ref=${dialog} class=${className} aria-label=${title} onClose=${close}
    onCancel=${(event) => (event.preventDefault(), close())} onPointerDown=${beside}>
    ${!bare && html`<header>
      <h2>${title}</h2>
      <button type="button" class="icon" aria-label=${t.close} title=${t.close} onClick=${close}>
        <${Icon} name="close" />
      </button>
    </header>`}
    ${children}
  </dialog>`;
}
