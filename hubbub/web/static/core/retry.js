// Retries work that can fail temporarily.

const FIRST_WAIT_MS = 500;
const MOST_WAITS = 6; // half a minute in all

const sleep = (ms) => new Promise((then) => setTimeout(then, ms));

/**
 * The result of `work`, retried after pauses, each twice as long as the last; rejects with the last
 * error after half a minute.
 * @param late  Called before each pause.
 */
export async function retry(work, { late = () => {}, pause = sleep } = {}) {
  for (let waits = 0; ; waits++) {
    try {
      return await work();
    } catch (error) {
      if (waits === MOST_WAITS) throw error;
      late();
      await pause(FIRST_WAIT_MS * 2 ** waits);
    }
  }
}
