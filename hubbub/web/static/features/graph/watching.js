// What is shown: the reader's own messages, or, for owners who want that, those of everybody. For the
// latter a second connection watches the whole log while the view is open.
import { Client } from "../../core/client.js";
import { signal, useEffect, useState } from "../../core/ui.js";
import { LATELY_MS } from "./flows.js";

const KEPT = 600; // messages

/** {before, flow, status, ofAll}: `before` a list and `flow` a signal of {message, at}, oldest first. */
export function useFlow(app, everything) {
  const [own] = useState(() => ({
    flow: app.state.flow,
    status: app.client.status,
    before: knownBefore(app),
    ofAll: false,
  }));
  const [all, setAll] = useState(null);
  useEffect(() => {
    if (!everything) return undefined;
    const watched = watch(app, own.before.concat(own.flow.peek()));
    setAll(watched);
    return () => {
      watched.client.leave();
      setAll(null);
    };
  }, [everything]);
  return all ?? own;
}

function watch(app, before) {
  const { url, me, token } = app.client;
  const flow = signal([]);
  const client = new Client(
    url,
    {
      ready: () => {},
      signal: () => {},
      event: ({ message }) => {
        flow.value = [...flow.peek().slice(1 - KEPT), { message, at: Date.now() }];
      },
    },
    { observe: true },
  );
  client.join(me, token);
  return { client, flow, before, status: client.status, ofAll: true };
}

/** Messages of the last minutes that this page had before it was looked at, or was told on joining. */
function knownBefore(app) {
  const since = Date.now() - LATELY_MS;
  const heard = new Set(app.state.flow.peek().map(({ message }) => message.seq));
  const found = [];
  for (const thread of app.state.threads.peek().values()) {
    for (const message of thread.messages.values()) {
      const at = Date.parse(message.sent_at);
      if (at > since && !heard.has(message.seq)) found.push({ message, at });
    }
  }
  return found;
}
