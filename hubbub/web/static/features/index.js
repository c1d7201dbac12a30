// All features, in the order of registration. A new feature is one more line.
import agents from "./agents/feature.js";
import appearance from "./appearance/feature.js";
import channels from "./channels/feature.js";
import composer from "./composer/feature.js";
import control from "./control/feature.js";
import conversation from "./conversation/feature.js";
import graph from "./graph/feature.js";
import help from "./help/feature.js";
import home from "./home/feature.js";
import inbox from "./inbox/feature.js";
import interaction from "./interaction/feature.js";
import join from "./join/feature.js";
import notices from "./notices/feature.js";
import notifications from "./notifications/feature.js";
import palette from "./palette/feature.js";
import people from "./people/feature.js";
import receipts from "./receipts/feature.js";
import replies from "./replies/feature.js";
import threads from "./threads/feature.js";
import turns from "./turns/feature.js";

export const FEATURES = [
  join,
  threads,
  conversation,
  composer,
  control,
  replies,
  receipts,
  turns,
  interaction,
  graph,
  agents,
  appearance,
  channels,
  help,
  home,
  inbox,
  notices,
  notifications,
  palette,
  people,
];

/** Features of mods, loaded when the hub has the operation they need. */
export const OFFERED = [
  { needs: "list_documents", load: () => import("./documents/feature.js") },
  { needs: "edit_message", load: () => import("./edits/feature.js") },
  { needs: "list_boards", load: () => import("./tasks/feature.js") },
  { needs: "list_polls", load: () => import("./polls/feature.js") },
  { needs: "list_files", load: () => import("./files/feature.js") },
  { needs: "search", load: () => import("./search/feature.js") },
  { needs: "digest", load: () => import("./digest/feature.js") },
  { needs: "list_thread_info", load: () => import("./labels/feature.js") },
  { needs: "list_reactions", load: () => import("./reactions/feature.js") },
];
