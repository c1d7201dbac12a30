// What one does with channels. What the hub refuses is told.
import { channelThread, rootOf } from "../../core/ids.js";
import { t } from "../../texts.js";

export async function create(app, args) {
  await tried(app, async () => {
    await app.client.write("create_channel", args);
    await app.refreshChannels();
    app.show(channelThread(args.name));
  });
}

export async function join(app, name) {
  await tried(app, async () => {
    await app.client.write("join_channel", { channel: name });
    await app.refreshChannels();
    app.show(channelThread(name));
    app.say(t.channels.joined(name));
  });
}

export async function leave(app, name) {
  await tried(app, async () => {
    await app.settle(); // afterwards it would be about a thread that one is not in
    await app.client.write("leave_channel", { channel: name });
    await app.refreshChannels();
    const here = app.here.peek();
    if (here && rootOf(here) === channelThread(name)) app.router.go("");
    app.say(t.channels.left(name));
  });
}

async function tried(app, what) {
  try {
    await what();
  } catch (error) {
    app.say(error.message);
  }
}
