// Does something now and again: when there is news, but not more often than told, and never twice at once.

/**
 * @param {number} milliseconds at least between two times
 * @param {() => Promise<void>} work
 * @param {(again: () => void) => () => void} news calls `again` when there is something new
 * @returns {() => void} stops it
 */
export function often(milliseconds, work, news) {
  let waiting = false, stopped = false, due = false;
  const run = async () => {
    waiting = true;
    due = false;
    try {
      await work();
    } catch {
      // the connection is gone, which the page says elsewhere; the next news is another chance
    }
    setTimeout(() => {
      waiting = false;
      if (due && !stopped) run();
    }, milliseconds);
  };
  const stop = news(() => {
    if (waiting) due = true;
    else if (!stopped) run();
  });
  run();
  return () => {
    stopped = true;
    stop();
  };
}
