package browsertest

// The libraries are not kept here. What stands in for them dispatches the events
// that the client listens to, with the details that it reads, in the order that
// htmx 2.0 and Turbo 8.0 do.

const htmxStandIn = `
(() => {
  const fire = (elt, type, detail) =>
    (elt.isConnected ? elt : document.body).dispatchEvent(new CustomEvent("htmx:" + type, { bubbles: true, cancelable: true, detail: { ...detail, elt } }));
  const busy = new WeakSet();
  const queued = new WeakMap();

  function issue(elt, event, confirmed) {
    const path = elt.getAttribute("hx-post");
    const issueRequest = (skip) => issue(elt, event, Boolean(skip));
    if (!confirmed && !fire(elt, "confirm", { path, verb: "post", triggeringEvent: event, issueRequest, question: null })) return;
    if (busy.has(elt)) {
      queued.set(elt, () => issue(elt, event));
      return;
    }
    busy.add(elt);
    const form = elt.closest("form");
    const parameters = new FormData(form, event.submitter ?? null);
    const config = { path, verb: "post", triggeringEvent: event, headers: { "HX-Request": "true" }, parameters, elt };
    elt.dispatchEvent(new CustomEvent("htmx:configRequest", { bubbles: true, cancelable: true, detail: config }));

    const xhr = new XMLHttpRequest();
    xhr.open("POST", path);
    for (const [name, value] of Object.entries(config.headers)) xhr.setRequestHeader(name, value);
    const detail = { xhr, requestConfig: config };
    xhr.onloadend = () => {
      const target = elt.getAttribute("hx-swap") === "outerHTML" ? elt : document.querySelector(elt.getAttribute("hx-target"));
      if (xhr.status >= 200 && xhr.status < 400) {
        if (target === elt) target.outerHTML = xhr.response;
        else target.innerHTML = xhr.response;
      }
      fire(elt, "afterRequest", { ...detail, successful: xhr.status < 400 && xhr.status > 0 });
      busy.delete(elt);
      queued.get(elt)?.();
      queued.delete(elt);
    };
    if (!fire(elt, "beforeRequest", detail)) return;
    fire(elt, "beforeSend", detail);
    xhr.send(new URLSearchParams(parameters));
  }

  document.addEventListener("submit", (e) => {
    if (!e.target.matches("form[hx-post]")) return;
    e.preventDefault();
    issue(e.target, e);
  });
  document.addEventListener("click", (e) => e.target.matches("button[hx-post]") && issue(e.target, e));
})();`

const turboStandIn = `
window.Turbo ??= (() => {
  const fire = (target, type, detail) =>
    target.dispatchEvent(new CustomEvent("turbo:" + type, { bubbles: true, cancelable: true, detail }));
  const snapshots = new Map();

  function visit(url, action, response) {
    fire(document.documentElement, "visit", { url, action });
    snapshots.set(location.href, document.body.cloneNode(true));
    if (action === "advance") history.pushState({}, "", url);
    render(response);
  }
  function render(text) {
    const page = new DOMParser().parseFromString(text, "text/html");
    document.body.replaceWith(document.adoptNode(page.body));
    fire(document.documentElement, "load", { url: location.href });
  }

  async function submit(form, submitter) {
    const data = new FormData(form, submitter);
    const fetchOptions = { method: form.method.toUpperCase(), body: new URLSearchParams(data), headers: { Accept: "text/vnd.turbo-stream.html, text/html, application/xhtml+xml" } };
    fire(form, "before-fetch-request", { fetchOptions, url: new URL(form.action) });
    fire(form, "submit-start", { formSubmission: {} });
    let response = null;
    try {
      response = await fetch(form.action, fetchOptions);
      fire(form, "before-fetch-response", { fetchResponse: { response } });
    } finally {
      fire(form, "submit-end", { success: Boolean(response?.ok), fetchResponse: response ? { response } : undefined });
    }
    const text = await response.text();
    if (response.redirected) visit(response.url, "advance", text);
    else render(text);
  }

  document.addEventListener("submit", () => {
    document.addEventListener("submit", (e) => {
      if (e.defaultPrevented) return;
      e.preventDefault();
      e.stopImmediatePropagation();
      submit(e.target, e.submitter);
    }, { once: true });
  }, true);
  document.addEventListener("click", async (e) => {
    if (!e.target.matches("a[href]")) return;
    e.preventDefault();
    const response = await fetch(e.target.href);
    visit(e.target.href, "advance", await response.text());
  });
  addEventListener("popstate", () => {
    fire(document.documentElement, "visit", { url: location.href, action: "restore" });
    document.body.replaceWith(snapshots.get(location.href).cloneNode(true));
    fire(document.documentElement, "load", { url: location.href });
  });
  return {};
})();`
