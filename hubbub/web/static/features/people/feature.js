// The participants: a part of the left column, and a card for each on the right.
import { dialogOf } from "../../parts/dialog.js";
import { lazy } from "../../parts/lazy.js";
import { t } from "../../texts.js";
import { People } from "./people.js";

const ParticipantPanel = lazy(() => import("./participant-panel.js").then((module) => module.ParticipantPanel));
const StartDirect = lazy(() => import("./start-direct.js").then((module) => module.StartDirect));

export default function people(app) {
  const starting = dialogOf(app, StartDirect);
  app.add.sidebar.add({ order: 40, view: People });
  app.add.panels.add({ kind: "participant", order: 10, view: ParticipantPanel });
  app.add.commands.add({
    id: "direct-start", title: t.sidebar.startDirect, slash: "dm", hint: t.people.dmHint, icon: "message",
    group: t.groups.going, keys: "g m",
    run: (context, rest = "") => start(app, rest, starting),
  });
}

const NAMES = /^@?[\w-]+(?:\s*,\s*@?[\w-]+)*(?=\s|$)/;

/**
 * As in the terminal, "ann" or "ann,bob" opens the conversation with them, and any text after that is
 * sent there; without names it asks for them. Throws for an unknown participant.
 */
function start(app, rest, starting) {
  const [list] = NAMES.exec(rest) ?? [rest];
  const names = list.split(/[\s,@]+/).filter(Boolean);
  const unknown = names.find((name) => !app.state.participant(name));
  if (unknown) throw new Error(t.people.unknown(unknown));
  if (!names.length) return void (starting.value = {});
  app.talkTo(...names);
  const text = rest.slice(list.length).trim();
  if (text) app.send(app.here.peek(), text);
}
