// A dialog with a form: its fields, Cancel, and a submit button.
import { html } from "../core/ui.js";
import { t } from "../texts.js";
import { Dialog } from "./dialog.js";
import { usePending } from "./pending.js";

/**
 * `submit` runs it. When it resolves, the dialog closes and the function it returned, if any, is
 * called. A refusal of the hub is shown, and the dialog stays. `label` is on the button, red if
 * `danger`.
 */
export function FormDialog({ title, label, danger = false, ready = true, submit, close, className = "", children }) {
  const { busy, problem, run } = usePending();
  const send = (event) => {
    event.preventDefault();
    run(async () => {
      const then = await submit();
      close();
      then?.();
    });
  };
  return html`<${Dialog} title=${title} close=${close} className=${className}>
    <form class="body" onSubmit=${send}>
      ${children}
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      <div class="actions">
        <button type="button" onClick=${close}>${t.cancel}</button>
        <button type="submit" class=${danger ? "danger" : "primary"} disabled=${busy || !ready}>${label}</button>
      </div>
    </form>
  <//>`;
}
