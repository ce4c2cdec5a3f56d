import { pause, random, settings } from "./settings.mjs";
import { arrival, askOthers, pageId, recall, remember } from "./memory.mjs";
import { DONE, FOREIGN, REFUSED, RETRY, STALE, UNCLAIMED, UNKNOWN, drawToken, howStands } from "./answers.mjs";
import { fill } from "./field.mjs";

// The phases of a token.
export const FRESH = "fresh"; // not sent, or sent and refused
export const SENT = "sent"; // its outcome is not known
export const USED = "used"; // it has its outcome, which the same content gets again
export const DEAD = "dead"; // refused for good; only the page or a reload goes on

const ASK_AFTER = 600_000; // ms; when to ask about a token of unknown lifetime

// A Submission is one form's way from its first token to its last: a token is
// replaced only when it is certain that it has its outcome, or can't have one.
export class Submission {
  record = null; // the token and what is known of it; kept in sessionStorage
  spare = ""; // a token that the server put into the page and that is not in use
  element = null; // the form element, if there is one
  flight = null; // the request that a script, not the browser, has under way
  held = null; // a submit that waits for its token
  answered = false; // this page has seen the outcome of the token
  passed = ""; // the digest of the submit that was last let through
  read = ""; // the digest of what a script last read out of the form
  #queue = Promise.resolve();
  #waiting = 0;

  constructor(key, name, instance) {
    this.key = key;
    this.name = name;
    this.instance = instance;
  }

  // enqueue runs tasks one after the other, so that two of them never both find
  // that a new token is due.
  enqueue(task) {
    this.#waiting++;
    const done = this.#queue.then(task).finally(() => this.#waiting--);
    this.#queue = done.catch(() => {});
    return done;
  }

  // passes reports whether a submit may leave as it is, now, with the token that
  // is there.
  passes(digest, by) {
    if (!this.record || this.#waiting) return false;
    if (this.flight?.by === by && this.flight.digest !== digest) return false;
    switch (this.record.phase) {
      case FRESH:
        return Date.now() < this.record.check;
      case DEAD:
        return true; // the server says why it is refused
    }
    return !this.#changed(digest, by);
  }

  // Digests that were made in two ways say nothing about each other.
  #changed(digest, by) {
    return this.record.by === by && this.record.digest !== digest;
  }

  // prepare sees to it that the token is the right one for a submit: the one that
  // has been sent for the same content, and for as long as nobody knows what came
  // of it; a new one for other content once the outcome is known.
  async prepare(digest, by) {
    let waited = false;
    while (this.flight?.by === by && this.flight.digest !== digest) {
      waited = true;
      await this.flight.over;
    }
    await this.ready();
    if (this.record.phase === SENT && this.#changed(digest, by)) await this.learn();
    if (this.record.phase === USED && this.#changed(digest, by)) {
      if (waited && !this.tell("changed", {}, true)) throw new DOMException("The page has cancelled the submit", "AbortError");
      await this.draw();
    }
    if (this.record.phase === FRESH && Date.now() >= this.record.check) await this.inspect();
  }

  // ready resolves once there is a token.
  async ready() {
    if (this.record) return;
    const stored = recall(this.key);
    const kept = stored && (await this.#adopt(stored));
    if (!kept) return this.draw();
    if (this.spare === stored.token) this.spare = "";
    this.keep(stored);
    if (!this.instance) this.#keepIfAlone(stored);
  }

  // #adopt decides whether to go on with the token of an earlier page.
  async #adopt(stored) {
    const elsewhere = stored.owner && stored.owner !== pageId && !this.instance;
    if (elsewhere && (await askOthers(stored.id, 250))) return false;
    const back = arrival.back || stored.arrival === arrival.id;
    switch (stored.phase) {
      case FRESH:
        return Date.now() < stored.check && (!this.spare || this.spare === stored.token);
      case USED:
        return back;
      case SENT:
        return this.#review(stored, back);
    }
    return false;
  }

  // #review asks what came of a token whose outcome this tab has not seen, and
  // reports whether to go on with it.
  async #review(record, back) {
    switch (await howStands(this.element, record.token)) {
      case "done":
        record.phase = USED;
        return back;
      case "free":
        record.phase = FRESH;
        return !this.spare || this.spare === record.token;
      case "unasked":
        return back; // nobody can say; who comes by a link gets a form that works
      case UNCLAIMED:
      case FOREIGN:
      case STALE:
        return false;
    }
    return true;
  }

  // #keepIfAlone gives way if it turns out that another tab holds the same token:
  // this one has been duplicated.
  async #keepIfAlone(record) {
    const held = await askOthers(record.id, 2_000);
    if (held && this.record === record && record.phase === FRESH) this.enqueue(() => this.draw()).catch(() => {});
  }

  // comeBack is called when the page is shown again from the cache of Back.
  comeBack() {
    const stored = recall(this.key);
    if (!this.record) return;
    if (stored?.token === this.record.token) this.record = stored;
    this.answered = false;
    this.keep(this.record);
    if (this.record.phase !== SENT) return;
    this.enqueue(async () => {
      const record = this.record;
      if (await this.#review(record, true)) this.keep(record);
      else await this.draw();
    }).catch(() => {});
  }

  // learn finds out what came of a token, so that changed content need not be
  // sent under it. While that is open, it waits.
  async learn() {
    const record = this.record;
    const end = Date.now() + settings.patience;
    for (let wait = 100; ; wait = Math.min(wait * 1.5, 2_000)) {
      const state = await howStands(this.element, record.token);
      if (this.record !== record || record.phase !== SENT) return;
      if (state === "pending" && Date.now() < end) {
        await pause(wait);
        continue;
      }
      if (state === "done") record.phase = USED;
      if (state === "free") record.phase = FRESH;
      if (state === UNCLAIMED) return this.draw();
      return this.keep(record);
    }
  }

  // inspect asks about a token that has not been sent, but may be too old.
  async inspect() {
    const state = await howStands(this.element, this.record.token);
    if (state === UNCLAIMED || state === FOREIGN) return this.draw();
    this.record.check = Date.now() + ASK_AFTER;
    this.keep(this.record);
  }

  // draw goes on with a new token. Until it has come, the old one stays.
  async draw() {
    const token = this.spare;
    this.spare = "";
    try {
      const drawn = token ? { token, check: Date.now() + ASK_AFTER } : await drawToken(this.element, this.name, this.instance);
      this.answered = false;
      this.read = "";
      this.keep({ id: random(), ...drawn, phase: FRESH, digest: "", by: "" });
    } catch (error) {
      this.tell("error", { error });
      throw error;
    }
    this.tell("ready", {});
  }

  // renew ends with an outcome that has been seen: what follows is another
  // submit, even with the same content. Before the outcome it does nothing.
  renew() {
    return this.enqueue(() => (this.record?.phase === USED || this.record?.phase === DEAD ? this.draw() : this.ready()));
  }

  // touch notes that the visitor has changed something in the form. After an
  // outcome that he has seen on this page, that is the start of the next submit.
  touch() {
    if (!this.answered || this.flight || this.record?.phase !== USED) return;
    this.answered = false;
    this.record.digest = ""; // if no token can be had now, it is drawn at the submit
    this.renew().catch(() => {});
  }

  // begin notes that a script sends a request with the token.
  begin(digest, by) {
    const flight = { digest, by, record: this.record, wasFresh: this.record.phase === FRESH };
    flight.over = new Promise((resolve) => (flight.land = resolve));
    this.flight = flight;
    this.sent(digest, by);
    this.showBusy();
    return flight;
  }

  // sent notes that the token has left with this content.
  sent(digest, by) {
    if (this.record.phase === USED || this.record.phase === DEAD) return;
    Object.assign(this.record, { phase: SENT, digest, by });
    this.save();
  }

  // end notes what came of a flight.
  end(flight, verdict) {
    const { record, digest, by } = flight;
    if (verdict === DONE) {
      Object.assign(record, { phase: USED, digest, by });
      this.answered = true;
    } else if (verdict === REFUSED && flight.wasFresh) {
      record.phase = FRESH;
    } else if (verdict === STALE) {
      record.phase = DEAD;
    }
    if (this.record === record) this.save();
    if (this.flight === flight) this.flight = null;
    this.showBusy();
    flight.land();
  }

  keep(record) {
    this.record = record;
    this.save();
    if (this.element) fill(this.element, record.token);
  }

  // save stores the record in the hands of this page, or in nobody's.
  save(owner = pageId) {
    if (this.record) remember(this.key, Object.assign(this.record, { owner, arrival: arrival.id }));
  }

  // The button stays as it is, because a button that has been disabled stays
  // dead when something goes wrong.
  showBusy() {
    if (this.flight || this.held) this.element?.setAttribute("aria-busy", "true");
    else this.element?.removeAttribute("aria-busy");
  }

  // tell dispatches submitonce:TYPE on the form, and returns false if the page
  // has prevented what would follow.
  tell(type, detail, cancelable = false) {
    const target = this.element?.isConnected ? this.element : document;
    detail.name = this.name;
    return target.dispatchEvent(new CustomEvent(`submitonce:${type}`, { bubbles: true, cancelable, detail }));
  }
}
