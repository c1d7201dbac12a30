// The title of the tab and its icon.
import { waiting } from "./waiting.js";

/** "(3) #general · quickstart" */
export function titleFor(app) {
  const network = app.state.network.value || app.about.network;
  if (!app.state.me.value) return network;
  const { view, args } = app.route.value;
  const here = app.add.views.find((each) => each.name === view)?.title?.(args);
  const count = waiting(app.state);
  return `${count ? `(${count}) ` : ""}${here ? `${here} · ` : ""}${network}`;
}

/** The icon with a dot, or without. */
export function showDot(shown, link = document.querySelector("link[rel=icon]")) {
  const wanted = link.href.replace(/icon(?:-dot)?\.svg$/, shown ? "icon-dot.svg" : "icon.svg");
  if (link.href !== wanted) link.href = wanted;
}
