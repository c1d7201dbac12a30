// The receipts of a message, asked for again when something may have changed: not more often than
// every few seconds, and only while they are shown.
import { useEffect, useRef, useState } from "../../core/ui.js";
import { noteReceipts } from "../../core/delivery.js";

const FEWEST_MS = 2000; // between two questions after news of deliveries
const ANYWAY_MS = 10_000; // nobody tells when somebody reads

export function useReceipts(app, message) {
  const [told, setTold] = useState({});
  const asked = useRef(0);
  const heard = app.state.delivered.value;
  const [round, next] = useState(0);
  useEffect(() => {
    const wait = Math.max(0, asked.current + FEWEST_MS - Date.now());
    const timer = setTimeout(ask, wait);
    return () => clearTimeout(timer);
  }, [message.id, heard, round]);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || next((n) => n + 1), ANYWAY_MS);
    return () => clearInterval(timer);
  }, []);

  async function ask() {
    asked.current = Date.now();
    try {
      const answer = await app.client.call("read_receipts", { id: message.id });
      setTold(answer);
      if (message.sender_id === app.state.me.peek()) noteReceipts(app.state, message.seq, answer.receipts);
    } catch (error) {
      setTold({ problem: error.message });
    }
  }
  return told;
}
