// A mod's list for all threads or one: header, loading state, and an empty state with an action.
import { html } from "../core/ui.js";
import { Empty, Loading } from "./empty.js";
import { Icon } from "./icon.js";

/** `name` is that of the view and its class; `found` is the result of `useWatched`; `create` adds an item, `more` loads older ones. */
export function Listing({ app, name, icon, words, thread = null, found, isEmpty, create = null, more = null, children }) {
  const title = thread ? words.inThread(app.state.titleOf(thread)) : words.title;
  const making = create && html`<button type="button" class="primary" onClick=${create}>
    <${Icon} name="plus" size=${16} />${words.create}</button>`;
  return html`
    <header class="title"><h1 class="cut" tabindex="-1" data-focus>${title}</h1>
      <div class="tools">
        ${thread && html`<a class="button plain" href=${app.router.href(name)}>${words.all}</a>`}
        ${!isEmpty && making}
      </div>
    </header>
    <div class=${`page ${name}`}>
      <${Loading} found=${found} />
      ${isEmpty && html`<${Empty} icon=${icon} ...${words.empty}>${making}<//>`}
      ${children}
      ${more && html`<button type="button" class="plain" onClick=${more}>${words.older}</button>`}
    </div>
  `;
}
