"use strict";
// Lets values be read off the charts. Without this script they are still drawn.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const FAR = 60; // units of a chart from which on the pointer is at no point

  const element = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const scale = ([low, high, from, to]) => (value) => from + ((value - low) / (high - low)) * (to - from);
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const short = (value) => String(Number(value.toPrecision(6)));

  // Texts are set as text, never as HTML: names of cases may be anything.
  const tell = (output, parts) => {
    output.replaceChildren(
      ...parts.flatMap(([word, value], at) => {
        const part = document.createElement("span");
        const shown = document.createElement("b");
        shown.textContent = value;
        part.append(word ? `${word} ` : "", shown);
        return at ? [" · ", part] : [part];
      }),
    );
  };

  const curveWords = (data, line, at) => {
    const words = [
      ["", line.label],
      ["coverage", percent(line.x[at])],
      ["risk", line.y[at].toFixed(4)],
      ["interval", `${line.low[at].toFixed(4)} to ${line.high[at].toFixed(4)}`],
    ];
    if (line.threshold[at] !== null) {
      words.push(["threshold", short(line.threshold[at])], ["last accepted", data.cases[line.case[at]]]);
    }
    return words;
  };
  const scatterWords = (data, line, at) => {
    const words = [
      ["", data.cases[at]],
      ["confidence", short(line.x[at])],
      [data.axis, line.y[at].toFixed(4)],
    ];
    if (line.decision && line.decision[at]) words.push(["decision", line.decision[at]]);
    return words;
  };

  const start = (figure) => {
    const source = figure.querySelector('script[type="application/json"]');
    if (!source) return;
    const data = JSON.parse(source.textContent);
    const picture = figure.querySelector("svg[tabindex]");
    const cursor = figure.querySelector(".cursor");
    const output = figure.querySelector(".told");
    const across = scale(data.frame.x);
    const up = scale(data.frame.y);
    const isCurve = data.kind === "curve";
    const hint = isCurve ? "Point at a curve to read it off." : "Point at a dot to see which case it is.";
    const main = data.series.findIndex((line) => picture.querySelector(`.line.main[data-series="${line.name}"]`));
    const points = data.series.map((line) => line.x.map((x, at) => [across(x), Math.max(up(line.y[at]), data.frame.y[3])]));
    const order = isCurve ? null : [...data.series[0].x.keys()].sort((a, b) => data.series[0].x[a] - data.series[0].x[b]);
    const home = { line: Math.max(main, 0), at: isCurve ? Math.floor(points[Math.max(main, 0)].length / 2) : order[0] };
    let chosen = null; // the line that a button keeps in front
    let now = { ...home };

    const emphasise = (which) => {
      picture.classList.toggle("picked", which !== null);
      for (const path of picture.querySelectorAll("[data-series]")) {
        path.classList.toggle("on", which !== null && path.dataset.series === data.series[which].name);
      }
    };
    const show = (line, at) => {
      now = { line, at };
      const [x, y] = points[line][at];
      const lines = isCurve ? `M${x} ${data.frame.y[2]}V${y}M${data.frame.x[2]} ${y}H${x}` : "";
      cursor.replaceChildren(element("path", { d: lines }), element("circle", { cx: x, cy: y, r: 6 }));
      tell(output, (isCurve ? curveWords : scatterWords)(data, data.series[line], at));
      if (isCurve) emphasise(line);
    };
    const clear = () => {
      cursor.replaceChildren();
      const words = document.createElement("span");
      words.className = "hint";
      words.textContent = hint;
      output.replaceChildren(words);
      emphasise(chosen);
    };
    const nearest = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
      let best = { distance: FAR };
      points.forEach((line, which) => {
        if (chosen !== null && which !== chosen) return;
        line.forEach(([x, y], place) => {
          const distance = Math.hypot(x - at.x, y - at.y);
          if (distance < best.distance) best = { distance, line: which, at: place };
        });
      });
      return best;
    };
    const move = (event) => {
      const best = nearest(event);
      if (best.line === undefined) clear();
      else show(best.line, best.at);
    };
    const nearestAcross = (line, x) =>
      points[line].reduce((best, point, at) => (Math.abs(point[0] - x) < Math.abs(points[line][best][0] - x) ? at : best), 0);
    const along = (step) => {
      const last = points[now.line].length - 1;
      const place = isCurve ? now.at : order.indexOf(now.at);
      const next = Math.min(Math.max(place + step, 0), last);
      show(now.line, isCurve ? next : order[next]);
    };
    const toOther = (step) => {
      const count = points.length;
      const line = (now.line + step + count) % count;
      show(line, nearestAcross(line, points[now.line][now.at][0]));
    };
    const keys = {
      ArrowRight: () => along(1),
      ArrowLeft: () => along(-1),
      PageUp: () => along(10),
      PageDown: () => along(-10),
      Home: () => along(-Infinity),
      End: () => along(Infinity),
      ArrowUp: () => (isCurve ? toOther(-1) : along(1)),
      ArrowDown: () => (isCurve ? toOther(1) : along(-1)),
      Escape: () => clear(),
    };

    picture.addEventListener("pointermove", move);
    picture.addEventListener("pointerdown", move);
    picture.addEventListener("pointerleave", clear);
    picture.addEventListener("focus", () => {
      if (picture.matches(":focus-visible")) show(now.line, now.at);
    });
    picture.addEventListener("blur", clear);
    picture.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    for (const button of figure.querySelectorAll("button[data-series]")) {
      const which = data.series.findIndex((line) => line.name === button.dataset.series);
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        chosen = chosen === which ? null : which;
        for (const each of figure.querySelectorAll("button[data-series]")) {
          each.setAttribute("aria-pressed", String(chosen !== null && each.dataset.series === data.series[chosen].name));
        }
        emphasise(chosen);
      });
    }
    clear();
  };

  document.documentElement.classList.add("js");
  document.querySelectorAll("figure.chart").forEach(start);
})();
