// `#/document/d3`: a document. The rest of the address selects the view: `/edit`, `/history`,
// `/changes/2/5`, or the number of an earlier version.
import { html } from "../../core/ui.js";
import { lazy } from "../../parts/lazy.js";
import { Reader } from "./reader.js";
import { words } from "./texts.js";

const Editor = lazy(() => import("./editor.js").then((module) => module.Editor));
const History = lazy(() => import("./history.js").then((module) => module.History));
const Changes = lazy(() => import("./changes.js").then((module) => module.Changes));
const VERSION = /^[1-9][0-9]{0,9}$/;

export function Document({ app, args: [id = "", what = "", ...rest], news }) {
  const props = { app, id, news };
  if (!/^d[1-9][0-9]{0,17}$/.test(id)) return html`<div class="empty"><p>${words.unknown}</p></div>`;
  if (what === "edit") return html`<${Editor} key=${id} ...${props} />`;
  if (what === "history") return html`<${History} key=${id} ...${props} />`;
  if (what === "changes" && rest.length === 2 && rest.every((each) => VERSION.test(each))) {
    return html`<${Changes} ...${props} old=${Number(rest[0])} now=${Number(rest[1])} />`;
  }
  const version = VERSION.test(what) ? Number(what) : null;
  return html`<${Reader} key=${`${id} ${version}`} ...${props} version=${version} />`;
}
