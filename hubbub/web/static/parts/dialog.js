// A dialog over the page: modal, closed by Escape, by its cross, or by a click beside it.
import { onceGone } from "../core/focus.js";
import { html, signal, useLayoutEffect, useRef } from "../core/ui.js";
import { t } from "../texts.js";
import { Icon } from "./icon.js";

/** A dialog of a feature: a signal of its props, null while it is not shown. It is given `close`, too. */
export function dialogOf(app, view) {
  const props = signal(null);
  const close = () => (props.value = null);
  app.add.layers.add({ view: () => props.value && html`<${view} app=${app} close=${close} ...${props.value} />` });
  return props;
}

/**
 * Shown for as long as it is drawn; `close` is asked to stop drawing it. What was focused before
 * is focused again afterwards, unless something else is. `[data-focus]` inside gets the focus first.
 */
export function Dialog({ title, close, className = "", bare = false, children }) {
  const dialog = useRef(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    dialog.current.querySelector("[data-focus]")?.focus();
    return () => onceGone(before);
  }, []);
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
