// State of an action: running, or refused by the hub.
import { useState } from "../core/ui.js";

const IDLE = { busy: false, problem: null };

/** {busy, problem, run, forget}: `run(work)` resolves to whether it succeeded; `forget` clears the problem. */
export function usePending() {
  const [state, setState] = useState(IDLE);
  const run = async (work) => {
    setState({ busy: true, problem: null });
    try {
      await work();
      setState(IDLE);
      return true;
    } catch (error) {
      setState({ busy: false, problem: error.code ? error.message : null }); // otherwise the person has left
      return false;
    }
  };
  return { ...state, run, forget: () => setState(IDLE) };
}
