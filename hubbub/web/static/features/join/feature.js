// Joining and leaving.
import { effect } from "../../core/ui.js";
import { t } from "../../texts.js";
import { Identity } from "./identity.js";

const NO_TOKEN = [4500, 4504]; // close codes: authentication failed, token revoked

export default function join(app) {
  const identity = (app.identity = new Identity(app.storage));
  const end = () => {
    identity.forgetHere();
    app.leave();
    app.router.go("");
  };
  const leave = () => {
    identity.forget(app.client.me);
    end();
  };
  effect(() => {
    const me = app.state.me.value;
    if (me) identity.keep(me, app.client.token); // only a token that the hub accepted is stored
  });
  effect(() => {
    const { state, code } = app.status.value;
    if (state === "refused" && NO_TOKEN.includes(code)) {
      identity.forgetToken(app.client.me, app.client.token);
      app.client.token = null;
    }
  });
  identity.watch((name) => name === app.state.me.peek() && end());
  app.add.commands.add({
    id: "leave-network", title: t.join.leave, hint: t.join.leaveHint, icon: "leave", menu: 90, run: leave,
  });
}

/** Join as last time, if this browser was joined. */
export function rejoin(app) {
  const last = app.identity.current;
  if (last) app.join(last.name, last.token);
}
