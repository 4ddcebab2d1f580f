"""How a page looks: light, dark and on paper, on a desk and on a telephone.

Colours of pictures are those of `pictures/palette.py`. Text keeps a contrast of 4.5 to 1 to what it
stands on, in light and in dark.
"""

from __future__ import annotations

from shardctl.rendering.pictures.palette import DARK, LIGHT, css

_COLOURS = f"""
:root{{color-scheme:light;--paper:{LIGHT.page};--ink:{LIGHT.text};--quiet:{LIGHT.quiet};
--rule:#dde1e6;--panel:#f5f6f8;--link:#0b57b0;--good:#176639;--warn:#7d4a00;--bad:#ad1f18;
--good-edge:#3a9d63;--warn-edge:#d08a1d;--bad-edge:#d5463d}}
@media screen and (prefers-color-scheme:dark){{:root{{color-scheme:dark;
--paper:{DARK.page};--ink:{DARK.text};--quiet:{DARK.quiet};
--rule:#363a3f;--panel:#212325;--link:#8cbcff;--good:#82d7a3;--warn:#f0be72;--bad:#ff9d95;
--good-edge:#3a9d63;--warn-edge:#c08325;--bad-edge:#d5564d}}}}
"""

_TEXT = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-padding-top:1.5rem}
body{margin:0;background:var(--paper);color:var(--ink);
font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
overflow-wrap:anywhere}
h1,h2,h3,h4{line-height:1.25;margin:0;font-weight:650}
h1,h2{text-wrap:balance}
h1{font-size:2rem;letter-spacing:-.015em}
h2{font-size:1.45rem;letter-spacing:-.01em}
h3{font-size:1.08rem}
p,ul,ol,dl,figure,blockquote{margin:0}
p,li,dd{max-width:68ch}
ul,ol{padding-left:1.2rem}
li+li{margin-top:.3rem}
a{color:var(--link);text-underline-offset:.15em;text-decoration-thickness:.07em}
a:hover{text-decoration-thickness:.14em}
:focus-visible{outline:3px solid var(--link);outline-offset:2px;border-radius:3px}
code{font:.9em/1.4 ui-monospace,"SF Mono",SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;
background:var(--panel);border-radius:4px;padding:.1em .3em}
pre{margin:0;padding:.85rem 1rem;background:var(--panel);border:1px solid var(--rule);
border-radius:8px;white-space:pre-wrap}
pre code{padding:0;background:none}
.short{white-space:nowrap}
.quiet{color:var(--quiet);font-size:.88rem}
.lead{font-size:1.05rem}
"""

_FRAME = """
.page{max-width:82rem;margin:0 auto;padding:2.5rem 2rem 4rem}
.page>header{margin-bottom:2rem}
.page>header p{color:var(--quiet);margin-top:.5rem;max-width:80ch}
.page>header .kind{font-size:.85rem;letter-spacing:.02em;margin:0 0 .35rem}
.columns{display:grid;gap:2.5rem;grid-template-columns:minmax(0,1fr)}
main{min-width:0}
main>section{padding-top:2.75rem}
main>section+section{margin-top:2.75rem;border-top:1px solid var(--rule)}
main>section:first-child{padding-top:0}
main>section>*+*{margin-top:1.1rem}
main>section>h3{margin-top:2.2rem}
main>section>h2+*{margin-top:.6rem}
main>section>h2+h3{margin-top:1.4rem}
main>section>.scroll+.quiet{margin-top:.5rem}
.contents h2{font-size:.85rem;color:var(--quiet);letter-spacing:.02em;margin-bottom:.6rem}
.contents ol{list-style:none;padding:0;margin:0}
.contents li+li{margin-top:0}
.contents a{display:block;padding:.28rem 0;text-decoration:none}
.contents a:hover{text-decoration:underline}
@media (min-width:66rem){
.columns{grid-template-columns:13.5rem minmax(0,1fr);gap:3.5rem}
.contents{position:sticky;top:2rem;align-self:start;max-height:calc(100vh - 4rem);overflow-y:auto;
font-size:.93rem}}
@media (max-width:40rem){
.page{padding:1.4rem 1rem 3rem}
h1{font-size:1.6rem}h2{font-size:1.3rem}
.contents{background:var(--panel);border-radius:8px;padding:.8rem 1rem .6rem}
.contents h2{margin-bottom:.2rem}
.contents li{display:inline-block;margin-right:1.1rem}}
"""

_ANSWERS = """
.answers{list-style:none;padding:0;display:grid;gap:1rem;
grid-template-columns:minmax(0,1fr)}
@media (min-width:44rem){.answers{grid-template-columns:repeat(2,minmax(0,1fr))}}
.answers>li{margin:0;max-width:none;border:1px solid var(--rule);border-radius:10px;
border-top:4px solid var(--quiet);padding:.9rem 1.1rem 1rem;background:var(--panel)}
.answers h3{font-size:.88rem;font-weight:500;color:var(--quiet)}
.answers .answer{font-size:1.5rem;font-weight:650;line-height:1.2;letter-spacing:-.01em;
margin:.3rem 0 .45rem}
.answers p{font-size:.93rem;line-height:1.45}
.answers p+p,.answers ul+p,.answers p+ul{margin-top:.5rem}
.answers ul{list-style:none;padding:0;font-size:.93rem;line-height:1.45}
.answers .good{border-top-color:var(--good-edge)}.good .answer{color:var(--good)}
.answers .warn{border-top-color:var(--warn-edge)}.warn .answer{color:var(--warn)}
.answers .bad{border-top-color:var(--bad-edge)}.bad .answer{color:var(--bad)}
.meter{position:relative;height:8px;border-radius:4px;background:var(--rule);margin:.55rem 0;
overflow:hidden;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.meter span{position:absolute;inset:0 auto 0 0;background:var(--quiet);border-radius:4px}
.good .meter span{background:var(--good-edge)}.warn .meter span{background:var(--warn-edge)}
.bad .meter span{background:var(--bad-edge)}
"""

_TABLES = """
dl{display:grid;gap:.7rem 2rem;grid-template-columns:repeat(auto-fill,minmax(min(100%,13rem),1fr))}
dt{font-size:.85rem;color:var(--quiet)}
dd{margin:0;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;max-width:100%;width:fit-content}
table{border-collapse:collapse;font-size:.93rem;font-variant-numeric:tabular-nums;line-height:1.4;
overflow-wrap:normal}
caption{text-align:left;color:var(--quiet);overflow-wrap:anywhere;
font-size:.88rem;padding:0 0 .5rem}
caption span{position:sticky;left:0;display:inline-block;max-width:min(100%,calc(100vw - 2rem))}
th,td{padding:.38rem .9rem .38rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--rule)}
th:last-child,td:last-child{padding-right:.2rem}
thead th{font-weight:600;font-size:.85rem;color:var(--quiet);border-bottom-color:var(--quiet);
vertical-align:bottom}
tbody th{font-weight:500}
.number{text-align:right;white-space:nowrap}
tbody td:not(.number){min-width:7.5rem}
tbody th:not(.number){min-width:6rem}
.said td{overflow-wrap:anywhere}
tbody th bdi{display:inline-block;max-width:min(24rem,60vw);overflow-wrap:anywhere}
details{border-left:2px solid var(--rule);padding-left:.9rem}
summary{cursor:pointer;color:var(--link);width:fit-content;padding:.1rem 0;font-size:.93rem}
summary:hover{text-decoration:underline}
details[open]>summary{margin-bottom:.6rem}
.not-shown{border-left:4px solid var(--warn-edge);background:var(--panel);padding:.7rem 1rem;
border-radius:0 8px 8px 0}
"""

# Of figures side by side the words, the pictures and the numbers begin on one line each.
_FIGURES = """
.figures{display:grid;gap:.8rem 2.25rem;
grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))}
figure{min-width:0;display:grid;grid-row:span 3;grid-template:subgrid/minmax(0,1fr);
align-items:start;align-content:start;margin-bottom:1.2rem}
figcaption{font-size:.93rem;line-height:1.45;color:var(--quiet)}
figcaption>*{display:block}
figcaption>*+*{margin-top:.3rem}
figcaption .title{color:var(--ink);font-size:1rem;font-weight:650}
figcaption .note{font-style:italic}
figure svg{display:block;width:100%;max-width:32rem;height:auto}
.stacks{align-items:start}
.stacks figure,.alone figure{grid-row:auto;grid-template-rows:auto;row-gap:.8rem}
.stacks figure+figure{margin-top:1.2rem}
@media (min-width:52rem){
.alone figure{grid-template-columns:minmax(0,32rem) minmax(0,1fr);column-gap:2.25rem}
.alone svg{grid-area:1/1/3/2}
.alone figcaption{grid-area:1/2/2/3}
.alone details{grid-column:1/-1}}
"""

_FINDINGS = """
.findings{list-style:none;padding:0;display:grid;gap:1.1rem}
.findings>li{margin:0;max-width:none;border:1px solid var(--rule);
border-left:4px solid var(--quiet);border-radius:0 10px 10px 0;padding:.85rem 1.1rem 1rem;
break-inside:avoid}
.findings>.error{border-left-color:var(--bad-edge)}
.findings>.warning{border-left-color:var(--warn-edge)}
.findings h3{margin-bottom:.5rem}
.findings .severity{font-weight:650}
.error .severity{color:var(--bad)}.warning .severity{color:var(--warn)}
.lines{display:block}
.lines>div{display:grid;grid-template-columns:6.5rem minmax(0,1fr);gap:.1rem 1rem;
align-items:baseline}
.lines>div+div{margin-top:.4rem}
.lines dd{max-width:72ch}
.lines.wide>div{grid-template-columns:13rem minmax(0,1fr)}
@media (max-width:40rem){.lines>div,.lines.wide>div{grid-template-columns:minmax(0,1fr)}}
"""

_PAPER = """
@media print{
@page{margin:15mm 14mm}
body{font-size:10pt}
.page{max-width:none;padding:0}
.columns{display:block}
.contents{margin-bottom:2rem}
.contents ol{columns:2}
a{color:inherit;text-decoration:none}
main>section{padding-top:1.4rem}
main>section+section{margin-top:1.4rem}
h2,h3,caption,summary,figcaption{break-after:avoid}
figure svg,figcaption,.answers>li,tr,pre{break-inside:avoid}
.figures,.figures figure{display:block}
figcaption{margin-bottom:.6rem}
.scroll{overflow:visible}
table{font-size:8pt}
figure table{font-size:7pt}
th,td{padding:.15rem .5rem .15rem 0}
tbody td:not(.number),tbody th:not(.number){min-width:0}
tbody th:not(.number),td:not(.number){overflow-wrap:anywhere}
details{border:0;padding:0}
details::details-content{content-visibility:visible;block-size:auto}
summary{list-style:none;color:var(--quiet)}
.answers>li,.findings>li,pre,code{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""

_PARTS = (_COLOURS, _TEXT, _FRAME, _ANSWERS, _TABLES, _FIGURES, _FINDINGS, _PAPER)
STYLE = f"{''.join(_PARTS)}{css('.picture')}"
