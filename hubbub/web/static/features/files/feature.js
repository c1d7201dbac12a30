// Files of the mod `files`: attached to messages, shown below them, downloaded, listed.
import { effect, html } from "../../core/ui.js";
import { dialogOf } from "../../parts/dialog.js";
import { lazy } from "../../parts/lazy.js";
import { ModSignals } from "../../parts/mod-signals.js";
import { addPage } from "../../parts/pinned.js";
import { guardPage } from "./guard.js";
import { Tray } from "./tray.js";
import { words } from "./texts.js";

const SHEET = "files.css";
const Attach = lazy(() => import("./attach.js").then((module) => module.Attach), SHEET);
const Along = lazy(() => import("./attach.js").then((module) => module.Along), SHEET);
const Attached = lazy(() => import("./attached.js").then((module) => module.Attached), SHEET);
const List = lazy(() => import("./list.js").then((module) => module.List), SHEET);
const FilePanel = lazy(() => import("./panel.js").then((module) => module.FilePanel), SHEET);
const Large = lazy(() => import("./picture.js").then((module) => module.Large), SHEET);

export default function files(app) {
  const news = new ModSignals(app, "mod.files", ({ id }) => id);
  const large = dialogOf(app, Large);
  const show = (file) => (large.value = file);
  app.add.attachments.add({
    of: ({ uri }) => /^file:f[1-9][0-9]{0,17}$/i.test(uri),
    view: (props) => html`<${Attached} news=${news} show=${show} ...${props} />`,
  });
  app.add.panels.add({
    kind: "file", order: 10, title: words.one,
    view: (props) => html`<${FilePanel} key=${props.id} news=${news} show=${show} ...${props} />`,
  });
  addPage(app, {
    name: "files", title: words.title, icon: "clip", keys: "g f", ofThread: { title: words.ofThread, order: 25 },
    view: (props) => html`<${List} key=${props.args[0]} news=${news} ...${props} />`,
  });
  return app.client.may("begin_upload") ? addAttaching(app) : undefined;
}

function addAttaching(app) {
  const tray = new Tray(app);
  app.add.writing.add({ order: 10, view: (props) => html`<${Attach} tray=${tray} ...${props} />` });
  app.add.notes.add({
    order: 95, view: (props) => tray.of(props.thread.id).length > 0 && html`<${Along} tray=${tray} ...${props} />`,
  });
  app.add.speech.add({
    with: (thread) => tray.with(thread), said: (thread) => tray.said(thread),
    wait: (thread) => tray.wait(thread), instead: (thread) => tray.instead(thread),
    back: (thread, args) => tray.back(thread, args),
  });
  const unlisten = effect(() => {
    if (app.state.me.value) tray.open(app.mine.within("files"));
    else tray.close();
  });
  const unguard = guardPage();
  return () => {
    unlisten();
    unguard();
    tray.close();
  };
}
