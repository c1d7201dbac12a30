// Splits a bill: answers "12.50 + 9 for 2" with the amount each person pays. The calculator, a Python
// agent, does the sum; its result is an ordinary message and wakes this agent again.
import { serve } from "../../sdk/typescript/src/index.js"; // elsewhere: "@hubbub/client"

const ASKED = /^(.+) for (\d+)$/;

async function split({ content, request }, turn) {
  if (request && request.kind !== "task") {
    // The turn that asked the calculator has the thread of the person who asked.
    const task = await turn.call("read_message", { id: request.id });
    const { start } = await turn.call("read_turn", { id: task.cause_id });
    const text = request.kind === "result" ? `each pays: ${content}` : `no sum: ${content}`;
    await turn.call("send_text_message", { to: start.thread_id, text });
    return null;
  }
  const [, sum, people] = ASKED.exec(content) ?? [];
  if (!sum) return 'Say for example "12.50 + 9 for 2".';
  await turn.call("delegate", { to: "calculator", task: `(${sum}) / ${people}` });
}

await serve("bill", split, { joined: () => console.log("ready to split bills") });
