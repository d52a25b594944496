// Which pages may keep a stream open while nobody looks at them. Without https a browser has six connections to a
// server for all its tabs: if each tab held one, the seventh would wait for ever.

const SEATS = 3;

/** Whether this page has a seat, once it has asked. @type {Promise<boolean> | null} */
let asked = null;

/** Takes a seat where one is free, for as long as the page is open. */
export function takeSeat() {
  asked ??= find().then((found) => {
    // Another page may have been closed when this one asks again.
    if (!found) asked = null;
    return found;
  });
  return asked;
}

async function find() {
  // Browsers have no locks for pages that came over plain HTTP from another machine.
  if (!navigator.locks) return false;
  for (let n = 0; n < SEATS; n++) {
    const found = await new Promise((resolve) => {
      navigator.locks.request(`stream-${n}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock && new Promise(() => {});
      }).catch(() => resolve(false));
    });
    if (found) return true;
  }
  return false;
}
