// The possible actions on a task, and their operations.
export const OPERATIONS = {
  claim: "claim_task", finish: "finish_task", release: "release_task", assign: "assign_task",
  cancel: "cancel_task", reopen: "reopen_task", edit: "update_task",
};

/** The allowed actions, likeliest first, by the rules of hubbub/mods/tasks/schemas.py. */
export function actionsOf({ state, owner, created_by: author, request }, me, isOwner) {
  if (request) return [];
  if (state === "done" || state === "cancelled") return ["reopen"];
  const mayHold = !owner || owner === me || author === me || isOwner;
  if (!mayHold) return ["edit"];
  const steps = [
    state === "open" && !owner && "claim",
    state !== "blocked" && "finish",
    owner && "release",
    "assign", "edit", "cancel",
  ];
  return steps.filter(Boolean);
}

const LEADS = { claim: "claimed", finish: "done", release: "open", reopen: "open", cancel: "cancelled" };

/** The action that moves a task to a column, or null. */
export function actionTo(task, state, me, isOwner) {
  return actionsOf(task, me, isOwner).find((action) => LEADS[action] === state && task.state !== state) ?? null;
}
