// The page's entry point: creates the app, adds its features and renders it.
import { App } from "./core/app.js";
import { watchClicks } from "./core/clicks.js";
import { watchConnection } from "./core/connection.js";
import { keepFocus } from "./core/focus.js";
import { Layout } from "./core/layout.js";
import { Storage } from "./core/storage.js";
import { html, render } from "./core/ui.js";
import { FEATURES, OFFERED } from "./features/index.js";
import { rejoin } from "./features/join/feature.js";
import { Join } from "./features/join/join.js";

const about = JSON.parse(document.querySelector("meta[name=hubbub]").getAttribute("content"));
const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}`;
const app = new App({ about, url, storage: new Storage(`hubbub:${about.network}:`) });

app.use(FEATURES);
app.useOffered(OFFERED);
watchClicks();
keepFocus();
watchConnection(app.client);
addEventListener("pagehide", () => app.settle());
rejoin(app);

function Page() {
  return app.state.me.value ? html`<${Layout} app=${app} />` : html`<${Join} app=${app} />`;
}

render(html`<${Page} />`, document.getElementById("desk"));
