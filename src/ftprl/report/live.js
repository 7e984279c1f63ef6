"use strict";
// Asks for updates and replaces what has changed; what the reader has opened stays open.
(() => {
  const bar = document.getElementById("live");
  let version = "";
  const show = (text, lost) => { bar.textContent = text; bar.classList.toggle("lost", lost); };
  const put = (id, html) => {
    const place = document.getElementById(id);
    if (!place || place.dataset.html === html) return;
    const open = new Set([...place.querySelectorAll("details[open]")].map((d) => d.id));
    const tops = new Map([...place.querySelectorAll("details .scroll")].map((s) => [s.closest("details").id, s.scrollTop]));
    place.innerHTML = html;
    place.dataset.html = html;
    for (const d of place.querySelectorAll("details")) {
      d.open = open.has(d.id);
      const scroll = d.querySelector(".scroll");
      if (scroll && tops.has(d.id)) scroll.scrollTop = tops.get(d.id);
    }
  };
  const ask = async () => {
    try {
      const answer = await fetch("/data?since=" + encodeURIComponent(version), { cache: "no-store" });
      if (answer.status === 200) {
        const content = await answer.json();
        version = content.version;
        for (const [id, html] of Object.entries(content.parts)) put(id, html);
        document.title = content.title;
        show(content.status, content.failed);
      } else if (answer.status !== 204) {
        show("the server answered " + answer.status, true);
      }
    } catch {
      show("Connection lost: ftprl watch has ended. The page shows the last update.", true);
    }
    setTimeout(ask, 1000);
  };
  ask();
})();
