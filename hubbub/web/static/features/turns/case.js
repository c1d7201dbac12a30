// The result of a message as a case of `hubbub test`, to copy.
import { html } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { Loading } from "../../parts/empty.js";
import { useWatched } from "../../parts/watched.js";
import { words } from "./texts.js";

export function CaseDialog({ app, message: { id }, close }) {
  const made = useWatched(() => app.client.call("make_case", { message: id }), { key: id });
  const yaml = made.value?.yaml;
  return html`<${Dialog} title=${words.makeCase} close=${close}>
    <div class="body">
      <p class="quiet">${words.caseMeaning}</p>
      <${Loading} found=${made} />
      ${yaml && html`<pre class="code" tabindex="0" dir="ltr">${yaml}</pre>
        <div class="actions"><button type="button" class="primary" onClick=${() => app.copy(yaml, words.caseCopied)}>${words.copyCase}</button></div>`}
    </div>
  <//>`;
}
