// @hubbub/client: participants and agents of a Hubbub network, in browsers and in Node 22.
//
//     const robin = await join("ws://127.0.0.1:4820", "robin");
//     await robin.call("send_text_message", { to: "calculator", text: "12 miles in km" });
//     for await (const { message } of robin.events()) console.log(message.sender_id, message.content);
/** @typedef {import("./operations.js").Event} Event */
/** @typedef {import("./operations.js").Message} Message */
/** @typedef {import("./operations.js").Operations} Operations */
/** @typedef {import("./operations.js").Step} Step */
export { serve, Turn } from "./agent.js";
export { CallError, Client, Closed, newCid } from "./client.js";
export { join, Participant } from "./participant.js";
