// What may fail for a while is tried again.

const FIRST_WAIT_MS = 500;
const MOST_WAITS = 6; // half a minute in all

const sleep = (ms) => new Promise((then) => setTimeout(then, ms));

/**
 * What `work` resolves to. It is tried again after pauses, each twice as long as the one before;
 * rejects with the last error when half a minute was in vain.
 * @param late  Told before each pause.
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
