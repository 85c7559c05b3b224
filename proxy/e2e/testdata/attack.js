// Everything that a page can do to make a browser send a request to another address, and to see what comes back.
// attack(url) tries all of it; {} in url stands for the name of the trick. It returns what each trick could read.

const limit = 4000; // milliseconds, for a trick of which nothing is heard

function settled(start) {
  return new Promise(resolve => {
    const timer = setTimeout(() => resolve("nothing heard"), limit);
    const done = text => { clearTimeout(timer); resolve(text || ""); };
    try { start(done); } catch (e) { done(""); }
  });
}

const text = (url, options) => fetch(url, options).then(r => r.text()).catch(() => "");

function element(name, attributes) {
  return (url) => settled(done => {
    const e = document.createElement(name);
    e.onload = () => done(name === "img" ? "image of width " + e.naturalWidth : peek(e));
    e.onerror = () => done("");
    e.onloadedmetadata = () => done("media");
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v === "URL" ? url : v);
    document.body.append(e);
  });
}

// peek reads the document inside a frame, where the browser lets it.
function peek(frame) {
  try { return frame.contentDocument ? frame.contentDocument.documentElement.textContent : ""; } catch (e) { return ""; }
}

function form(method, type) {
  return (url) => settled(done => {
    const frame = document.createElement("iframe");
    frame.name = "f" + Math.random();
    document.body.append(frame);
    const f = document.createElement("form");
    Object.assign(f, { method, enctype: type, target: frame.name, action: url });
    const field = document.createElement("textarea");
    field.name = '{"a":"';
    field.value = '"}';
    f.append(field);
    document.body.append(f);
    frame.onload = () => done(peek(frame));
    f.submit();
  });
}

// sandboxed runs a script in a frame whose origin is null.
function sandboxed(script) {
  return (url) => settled(done => {
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts allow-forms";
    frame.srcdoc = "<form method=post></form><script>const url = " + JSON.stringify(url) + ";" + script + "<" + "/script>";
    addEventListener("message", e => { if (e.source === frame.contentWindow) done(e.data); });
    document.body.append(frame);
    let loads = 0;
    frame.onload = () => { if (++loads > 1) done(""); }; // the form has left
  });
}

const tricks = {
  "fetch-get": url => text(url),
  "fetch-credentials": url => text(url, { credentials: "include" }),
  "fetch-keepalive": url => text(url, { method: "POST", keepalive: true, body: "x" }),
  "fetch-simple-post": url => text(url, { method: "POST", body: new URLSearchParams({ a: 1 }) }),
  "fetch-text-post": url => text(url, { method: "POST", headers: { "Content-Type": "text/plain" }, body: "{}" }),
  "fetch-no-cors-get": url => text(url, { mode: "no-cors", credentials: "include" }),
  "fetch-no-cors-post": url => text(url, { mode: "no-cors", method: "POST", body: "{}" }),
  "fetch-no-referrer": url => text(url, { mode: "no-cors", method: "POST", referrerPolicy: "no-referrer", body: "{}" }),
  "preflight-json": url => text(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" }),
  "preflight-put": url => text(url, { method: "PUT", body: "{}" }),
  "preflight-delete": url => text(url, { method: "DELETE" }),
  "preflight-header": url => text(url, { method: "POST", headers: { "Postern-Event-Id": "from-a-page", Authorization: "Bearer x" } }),
  "xhr": url => settled(done => {
    const x = new XMLHttpRequest();
    x.onloadend = () => done(x.responseText);
    x.open("POST", url);
    x.send("{}");
  }),
  "beacon": url => Promise.resolve(navigator.sendBeacon(url, "{}") && ""),
  "ping": url => settled(done => {
    const a = document.createElement("a");
    Object.assign(a, { href: "#x", ping: url });
    document.body.append(a);
    a.click();
    done("");
  }),
  "form-urlencoded": form("POST", "application/x-www-form-urlencoded"),
  "form-text": form("POST", "text/plain"),
  "form-multipart": form("POST", "multipart/form-data"),
  "form-get": form("GET", "application/x-www-form-urlencoded"),
  "image": element("img", { src: "URL" }),
  "image-cors": element("img", { src: "URL", crossorigin: "use-credentials" }),
  "script": element("script", { src: "URL" }),
  "module": element("script", { src: "URL", type: "module" }),
  "style": element("link", { href: "URL", rel: "stylesheet" }),
  "iframe": element("iframe", { src: "URL" }),
  "object": element("object", { data: "URL" }),
  "video": element("video", { src: "URL", preload: "auto" }),
  "websocket": url => settled(done => {
    const w = new WebSocket(url.replace(/^http/, "ws"));
    w.onopen = () => done("an open socket");
    w.onerror = () => done("");
  }),
  "eventsource": url => settled(done => {
    const s = new EventSource(url);
    s.onopen = s.onmessage = () => { s.close(); done("an event source"); };
    s.onerror = () => { s.close(); done(""); };
  }),
  "window": url => settled(done => {
    const w = open(url, "_blank", "width=100,height=100");
    const look = setInterval(() => { // until it is a document of another origin, or one that can be read
      try {
        if (w.location.href === "about:blank") return;
        clearInterval(look);
        done(w.document.documentElement.textContent);
      } catch (e) {
        clearInterval(look);
        done("");
      }
      w.close();
    }, 20);
  }),
  "sandboxed-fetch": sandboxed("fetch(url, {method: 'POST', body: '{}'}).then(r => r.text()).catch(() => '').then(t => parent.postMessage(t, '*'))"),
  "sandboxed-form": sandboxed("document.forms[0].action = url; onload = () => setTimeout(() => document.forms[0].submit())"),
};

async function attack(url) {
  const read = {};
  await Promise.all(Object.entries(tricks).map(async ([name, trick]) => { read[name] = await trick(url.replaceAll("{}", name)); }));
  return read;
}
