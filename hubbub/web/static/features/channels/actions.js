// Actions on channels.
import { channelThread, rootOf } from "../../core/ids.js";
import { t } from "../../texts.js";

/** Create a channel and show it; rejects with the hub's refusal. */
export async function create(app, args) {
  await app.client.write("create_channel", args);
  await app.refreshChannels();
  app.show(channelThread(args.name));
}

export function join(app, name) {
  return app.tried(async () => {
    await app.client.write("join_channel", { channel: name });
    await app.refreshChannels();
    app.show(channelThread(name));
  }, t.channels.joined(name));
}

export function leave(app, name) {
  return app.tried(async () => {
    await app.settle(); // afterwards the reader is no longer a member of the thread
    await app.client.write("leave_channel", { channel: name });
    await app.refreshChannels();
    const here = app.here.peek();
    if (here && rootOf(here) === channelThread(name)) app.router.go("");
  }, t.channels.left(name));
}
