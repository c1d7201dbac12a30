// A summary of what happened since the last visit: the mod `digest`.
import { lazy } from "../../parts/lazy.js";
import { addPage } from "../../parts/pinned.js";
import { words } from "./texts.js";

const Digest = lazy(() => import("./digest.js").then((module) => module.Digest), "digest.css");

export default function digest(app) {
  addPage(app, { name: "digest", title: words.title, icon: "list", keys: "g w", order: 7, view: Digest });
}
