// A modal dialog, closed by Escape, its close button, or a click outside.
import { onceGone } from "../core/focus.js";
import { computed, effect, html, signal, useLayoutEffect, useRef } from "../core/ui.js";
import { t } from "../texts.js";
import { Icon } from "./icon.js";

/**
 * A feature's dialog: a signal of its props, null while it is not shown. It also gets `close`, and is
 * closed when the reader goes elsewhere or leaves.
 */
export function dialogOf(app, view) {
  const props = signal(null);
  const close = () => (props.value = null);
  const place = computed(() => {
    const { view: shown, args, open } = app.route.value;
    return `${app.state.me.value} ${app.router.href(shown, args, open)}`;
  });
  effect(() => (place.value, close()));
  app.add.layers.add({ view: () => props.value && html`<${view} app=${app} close=${close} ...${props.value} />` });
  return props;
}

/**
 * Shown while it is rendered; `close` asks the parent to stop rendering it. Afterwards the previous
 * focus is restored, unless another element has it. `[data-focus]` inside gets the focus first.
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
