// Putting it together: what is chosen, and drawing that.

(function () {
  const data = JSON.parse(byId("data").textContent);
  let filter = "", chosen = 0, timeline = null;

  function all() {
    const service = data.services[chosen];
    if (service) {
      timeline.filter = filter;
      timeline.render();
      showChanges(byId("changes"), data, service, filter, timeline);
      showMatrix(byId("matrix"), service, filter);
    }
    showFindings(byId("findings"), data, filter);
    showGaps(byId("gaps"), data);
  }

  function choose(i) {
    chosen = i;
    const service = data.services[i];
    if (service) {
      timeline = new Timeline(byId("timeline"), data, service, filter);
      byId("left").textContent = service.left ? `${service.left} more nodes differed less long and have no lane here` : "";
      byId("advice").textContent = service.advice || "";
    }
    all();
  }

  document.title = "kconverge: " + data.source;
  byId("source").textContent = data.source;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  byId("when").textContent = dateText(data, 0) + " " + clockText(data, 0, 0) + " to " + clockText(data, data.end, 0) + " " + zone + ", " +
    (data.asOf === null ? "nothing is vouched for yet" : "as of " + clockText(data, data.asOf, 3)) + data.details.map(d => ". " + d).join("");
  byId("made").textContent = "Made by " + data.tool + ". Rules are for new connections only; established flows are not in them.";
  data.services.forEach((s, i) => byId("service").append(el("option", { value: i }, s.name + " (" + s.state + ")")));
  byId("service").addEventListener("change", e => choose(Number(e.target.value)));
  byId("filter").addEventListener("input", e => { filter = e.target.value; all(); });
  byId("zoom-in").addEventListener("click", () => timeline && timeline.zoom(0.5));
  byId("zoom-out").addEventListener("click", () => timeline && timeline.zoom(2));
  byId("fit").addEventListener("click", () => timeline && timeline.fit());
  byId("theme").addEventListener("change", e => {
    if (e.target.value) document.documentElement.dataset.theme = e.target.value;
    else delete document.documentElement.dataset.theme;
  });
  addEventListener("resize", () => timeline && timeline.render());
  showLegend(byId("legend"));
  if (!data.services.length) byId("timeline").append(el("p", { class: "dim" }, "No Service to report on."));
  choose(0);
})();
