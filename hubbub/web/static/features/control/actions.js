// Actions of banners and lists: each is a write that is retried until the hub answers.
import { later } from "../../texts-later.js";

const done = (app, operation, args, said) => app.tried(() => app.client.write(operation, args), said);

export function resume(app, { scope, target }) {
  return done(app, "resume", target ? { scope, target } : { scope }, later.held.resumed);
}

export function release(app, { thread_id: thread }) {
  return done(app, "release_breaker", { thread }, later.held.released);
}

/** A repeated takeover renews it; `minutes` is how long it lasts, if not the default. */
export function takeOver(app, agent, minutes) {
  return done(app, "take_over", { agent, minutes }, later.takeover.taken(agent));
}

export function handBack(app, agent) {
  return done(app, "hand_back", { agent }, later.takeover.handedBack(agent));
}
