"""The style of HTML pages: light and dark, narrow screens, and A4 paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6675; --paper: #ffffff; --line: #d8dee6; --stripe: #f5f7fa;
  --mark: #1f5fa8; --alarm: #a3161f; --alarm-paper: #fdeceb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #a2aebd; --paper: #14181e; --line: #38424f;
  --stripe: #1b2129; --mark: #79b4f2; --alarm: #ffb4ae; --alarm-paper: #43191b; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main, footer { max-width: 52rem; margin: 0 auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 2rem 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
p, ul { margin: .5rem 0; }
ul { padding-left: 1.25rem; }
li { margin: .3rem 0; overflow-wrap: anywhere; }
.lead { color: var(--soft); }
.note { font-weight: 600; }
.banner { border: 2px solid var(--alarm); border-radius: .4rem; padding: .7rem 1rem; color: var(--alarm);
  background: var(--alarm-paper); font-weight: 700; }
.scroll { overflow-x: auto; margin: .75rem 0; }
small { display: block; color: var(--soft); font-size: .85em; font-weight: 400; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .94rem; }
caption { text-align: left; color: var(--soft); padding: .25rem 0; }
caption span { display: inline-block; position: sticky; left: 0; max-width: calc(100vw - 2.5rem);
  overflow-wrap: anywhere; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child { text-align: left; font-weight: 500; white-space: normal; overflow-wrap: anywhere; min-width: 8.5rem;
  position: sticky; left: 0; background: var(--paper); background-clip: padding-box; }
thead th, thead th:first-child { color: var(--soft); font-weight: 600; }
tbody tr:nth-child(even), tbody tr:nth-child(even) th { background: var(--stripe); }
.words td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.words thead th { text-align: left; }
.words th:first-child { white-space: nowrap; min-width: 0; }
figure { margin: 1.25rem 0 .5rem; }
figcaption { color: var(--soft); font-size: .9rem; }
.forest { display: grid; grid-template-columns: fit-content(42%) 1fr; font-size: .9rem; line-height: 1.25; }
.forest .name { padding: .3rem .6rem .3rem 0; overflow-wrap: anywhere; align-self: center;
  text-align: left; }
.forest .what { color: var(--soft); text-align: center; }
.forest .cell { position: relative; min-height: 1.6rem; }
.forest svg { position: absolute; inset: 0; overflow: visible; }
.forest text { fill: var(--soft); font-size: 12px; }
.forest .grid { stroke: var(--line); }
.forest .zero { stroke: var(--soft); stroke-width: 1.5; }
.forest .bar { stroke: var(--mark); stroke-width: 2.5; }
.forest circle { stroke: var(--mark); stroke-width: 2; }
.forest .apart { fill: var(--mark); }
.forest .open { fill: var(--paper); }
section[aria-labelledby="attacker"] table { width: auto; min-width: min(100%, 28rem); }
footer { color: var(--soft); font-size: .88rem; margin: 2.5rem auto 2rem; border-top: 1px solid var(--line);
  padding-top: .75rem; }
@media (max-width: 34rem) { body { font-size: 15px; } h1 { font-size: 1.4rem; } table { font-size: .87rem; }
  th, td { padding: .3rem .3rem; } th:first-child { min-width: 7rem; max-width: 8rem; padding-left: 0; } }
@page { size: A4; margin: 18mm 16mm; }
@media print { :root { --ink: #000; --soft: #444; --paper: #fff; --line: #bbb; --stripe: #fff; --mark: #1f5fa8;
  --alarm: #a3161f; --alarm-paper: #fff; }
  body { font-size: 10.5pt; } main, footer { max-width: none; padding: 0; } h1 { margin-top: 0; }
  .scroll { overflow: visible; }
  h2, tr, li, figure, .forest .name, .forest .cell { break-inside: avoid; } h2, caption { break-after: avoid; }
  * { print-color-adjust: exact; } }
"""
