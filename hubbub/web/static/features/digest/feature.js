// What happened since the last visit: the mod `digest`.
import { lazy } from "../../parts/lazy.js";
import { toView } from "../../parts/pinned.js";
import { t } from "../../texts.js";
import { words } from "./texts.js";

const Digest = lazy(() => import("./digest.js").then((module) => module.Digest), "digest.css");

export default function digest(app) {
  app.add.views.add({ name: "digest", title: () => words.title, view: Digest });
  app.add.sidebar.add({ id: "digest", order: 7, view: toView("digest", "list", words.title) });
  app.add.commands.add({
    id: "digest", title: words.title, slash: "digest", keys: "g w", icon: "list", group: t.groups.going,
    run: () => app.router.go("digest"),
  });
}
