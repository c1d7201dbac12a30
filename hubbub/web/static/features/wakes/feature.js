// Whom a message woke, and why: part of its panel.
import { lazy } from "../../parts/lazy.js";

const WhoWasWoken = lazy(() => import("./woken.js").then((module) => module.WhoWasWoken));

export default function wakes(app) {
  app.add.panels.add({ kind: "message", id: "wakes", order: 40, view: WhoWasWoken });
}
