// What came of a message as a case of `hubbub test`, to be copied.
import { html, useEffect, useState } from "../../core/ui.js";
import { Dialog } from "../../parts/dialog.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

export function CaseDialog({ app, message: { id }, close }) {
  const [{ yaml, problem }, setState] = useState({});
  useEffect(() => {
    app.client.call("make_case", { message: id }).then(
      (made) => setState({ yaml: made.yaml }),
      (error) => error.code && setState({ problem: error.message }),
    );
  }, [id]);
  const copy = () => navigator.clipboard.writeText(yaml).then(
    () => app.say(words.caseCopied),
    (error) => app.say(error.message),
  );
  return html`<${Dialog} title=${words.makeCase} close=${close}>
    <div class="body">
      <p class="quiet">${words.caseMeaning}</p>
      ${problem && html`<p class="note danger" role="alert">${problem}</p>`}
      ${!yaml && !problem && html`<p class="quiet" role="status">${t.loading}</p>`}
      ${yaml && html`<pre class="code" tabindex="0" dir="ltr">${yaml}</pre>
        <div class="actions"><button type="button" class="primary" onClick=${copy}>${words.copyCase}</button></div>`}
    </div>
  <//>`;
}
