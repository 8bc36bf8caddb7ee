
"use strict";
// Reads values off a plot where the pointer is. The page says the same without it.
document.querySelectorAll("svg.plot").forEach(function (svg) {
  var out = svg.parentNode.querySelector(".readout"), cross = svg.querySelector(".cross");
  var lines = Array.from(svg.querySelectorAll("g.series"), function (g) { return Array.from(g.querySelectorAll("circle")); });
  lines = lines.filter(function (points) { return points.length > 0; });
  if (!out || !cross || !lines.length) { return; }
  var x = function (c) { return +c.getAttribute("cx"); };
  var at = 0, rest = "Point at the plot, or use the arrow keys, to read values off.";
  function clear() {
    svg.querySelectorAll(".on").forEach(function (c) { c.classList.remove("on"); });
    cross.classList.remove("on");
    out.textContent = rest;
  }
  function show(where) {
    clear();
    var main = lines[0], best = 0, text = [];
    main.forEach(function (c, i) { if (Math.abs(x(c) - where) < Math.abs(x(main[best]) - where)) { best = i; } });
    at = best;
    lines.forEach(function (points) {
      var near = points[0];
      points.forEach(function (c) { if (Math.abs(x(c) - x(main[best])) < Math.abs(x(near) - x(main[best]))) { near = c; } });
      near.classList.add("on");
      var said = near.querySelector("title").textContent;
      if (text.indexOf(said) < 0) { text.push(said); }
    });
    cross.setAttribute("x1", x(main[best]));
    cross.setAttribute("x2", x(main[best]));
    cross.classList.add("on");
    out.textContent = text.join("  ·  ");
  }
  function move(event) {
    var box = svg.getBoundingClientRect();
    show((event.clientX - box.left) / box.width * svg.viewBox.baseVal.width);
  }
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", clear);
  svg.addEventListener("blur", clear);
  svg.addEventListener("keydown", function (event) {
    var by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) { return; }
    event.preventDefault();
    show(x(lines[0][Math.max(0, Math.min(lines[0].length - 1, at + by))]));
  });
  out.hidden = false;
  clear();
});
