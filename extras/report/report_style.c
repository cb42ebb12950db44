/* report_style.c — the style and the script of every page. The page works without the script, which adds: values under
 * the pointer to curves, the choice of a head to attention figures, and search and neighbours to maps of words. The
 * script contains no "<", so that it ends only at its end tag, and inserts texts only as textContent. */
#include "extras/report/report_private.h"

static const char style[] =
    "<style>\n"
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#5d6673;--line:#d5dae1;--card:#f6f7f9;--good:#18794e;"
    "--bad:#b42318;--c0:#2563eb;--c1:#b45309;--c2:#047857;--c3:#db2777;--c4:#7c3aed;--c5:#0e7490;--c6:#4d7c0f;"
    "--c7:#dc2626}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ed;--dim:#98a2b3;--line:#343a42;--card:#1d2125;"
    "--good:#4ade80;--bad:#f97066;--c0:#60a5fa;--c1:#fbbf24;--c2:#34d399;--c3:#f472b6;--c4:#a78bfa;--c5:#22d3ee;"
    "--c6:#a3e635;--c7:#f87171}}\n"
    "body{background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem;overflow-wrap:anywhere}\n"
    "h1{font-size:1.7rem;line-height:1.25}h2{font-size:1.25rem;margin-top:2.2rem;border-bottom:1px solid var(--line)}\n"
    "figure{margin:1.2rem 0;overflow-x:auto}figcaption{font-weight:600;margin-bottom:.3rem}small{color:var(--dim)}\n"
    "figure.n{display:inline-block;vertical-align:top;margin-right:1rem;min-width:min(20rem,100%);max-width:100%}"
    "body:has([data-a]){max-width:76rem}\n"
    "figure>svg,.i>svg{display:block;max-width:100%;height:auto}svg text{fill:var(--fg);font:12px system-ui,sans-serif}"
    "\n"
    "svg .d{fill:var(--dim)}svg .g{stroke:var(--line);fill:none}\n"
    "svg .f{fill:none;stroke-linejoin:round;vector-effect:non-scaling-stroke}\n"
    "svg .e{text-anchor:end}svg .m{text-anchor:middle}svg .q:hover text{font-weight:700}\n"
    "svg .a:hover .q:not(:hover) path{opacity:.03}\n"
    "figure.v{overflow:visible}figure>svg.v{overflow:visible;height:20rem;margin-left:62px;width:calc(100% - 86px)}\n"
    "svg .h{stroke:var(--dim);vector-effect:non-scaling-stroke;visibility:hidden}output{font-variant-numeric:tabular-"
    "nums;font-weight:600}.v+div{min-height:1.5rem}\n"
    "@media(max-width:37rem){.v .o{display:none}h1{font-size:1.4rem}}\n"
    "svg .b{cursor:pointer}svg .b:hover rect,svg .b:focus rect{stroke:var(--c1);stroke-width:2}svg .b{outline:0}\n"
    "figure>svg.map{margin:0;width:100%;height:35rem}svg .l{paint-order:stroke;stroke:var(--bg);stroke-width:3px}\n"
    "svg .n{fill:var(--bg)}svg .z{visibility:hidden}svg .b:hover .z,svg .b:focus .z,svg .u .z{visibility:visible}\n"
    "svg .u text{font-weight:700}svg .u circle{fill:var(--c1);r:5px}svg .b text{paint-order:stroke;stroke:var(--bg);"
    "stroke-width:3px}\n"
    ".top{background:var(--card);border-radius:.5rem;padding:1rem 1.2rem;margin:1rem 0}\n"
    ".top p{margin:0 0 .6rem;line-height:1.2}.top p b{font-size:2.8rem;margin-right:.6rem;font-weight:700;"
    "font-variant-numeric:tabular-nums}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:0;font-size:.9rem}dt{color:var(--dim)"
    "}dd{margin:0;white-space:pre-wrap}\n"
    "table{border-collapse:collapse}th,td{padding:.25rem .8rem;border-bottom:1px solid var(--line);text-align:left}\n"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}th{color:var(--dim);font-weight:600}\n"
    "table{overflow-wrap:normal}@media(max-width:37rem){th,td{padding:.2rem .4rem}}\n"
    "pre{background:var(--card);padding:.8rem;overflow-x:auto;border-radius:.4rem}\n"
    ".s{background:var(--card);border-radius:.4rem;padding:.6rem .9rem;margin:.6rem 0;white-space:pre-wrap}\n"
    ".s b{border-bottom:2px solid}.y{color:var(--good)}.x{color:var(--bad)}\n"
    ".w{display:flex;flex-wrap:wrap;gap:.8rem}.i{font-size:.8rem;color:var(--dim);max-width:8rem}\n"
    "svg image{image-rendering:pixelated}\n"
    ".k{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .35em 0 1em}\n"
    ".k:first-child{margin-left:0}\n"
    ".r{display:inline-block;width:10em;height:.8em;margin:0 .4em;border:1px solid var(--line);background:"
    "linear-gradient(90deg,transparent,var(--c0))}\n"
    "input[type=search]{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:"
    ".3rem;padding:.2rem .5rem;max-width:100%;box-sizing:border-box}\n"
    "fieldset.t{border:0;padding:0;margin:1.6rem 0 .3rem}fieldset.t legend{padding:0;font-weight:600}\n"
    "div.t{display:flex;flex-wrap:wrap;gap:.25rem}.t input{position:absolute;opacity:0}\n"
    ".t label{background:var(--card);border-radius:.3rem;padding:.1rem .5rem;cursor:pointer}\n"
    ".t input:checked+label{background:var(--c0);color:var(--bg)}.t label:hover{text-decoration:underline}\n"
    ".t input:focus-visible+label{outline:2px solid var(--c1);outline-offset:1px}\n"
    ".t .p{display:none;order:1;width:100%}.t input:checked+label+.p{display:block}\n"
    ".w{line-height:2.6}.i{line-height:1.3}.w span{display:inline-block;border-radius:.3rem;padding:0 .35rem;"
    "line-height:1.5;text-align:center;background:color-mix(in srgb,var(--c1) var(--s),transparent)}\n"
    ".w span.y,.w span.x{color:inherit}.w .y{background:color-mix(in srgb,var(--c2) var(--s),transparent)}.w small{"
    "display:block;font-size:.7rem;color:inherit;opacity:.85}\n"
    "@media print{body{max-width:none;margin:0}.t label{display:none}.t input:checked+label{display:inline}"
    "*{print-color-adjust:exact;-webkit-print-color-adjust:exact}h2,figcaption{break-after:avoid}"
    "figure,fieldset,tr{break-inside:avoid}figure:has(table){break-inside:auto}}\n"
    "</style>\n";

/* Curves: data-x and data-y are "low high log" of the axes; the points of a path are integers from 0 to 10000. */
static const char script[] =
    "<script>"
    "for(const s of document.querySelectorAll('svg[data-x]')){\n"
    "const a=k=>s.dataset[k].split(' ').map(Number),X=a('x'),Y=a('y'),h=s.querySelector('.h'),"
    "o=[...s.parentNode.querySelectorAll('output')],\n"
    "L=[...s.querySelectorAll('[data-s]')].map(p=>[...p.getAttribute('d').matchAll(/(\\d+) (\\d+)/g)].map(m=>[+m[1],"
    "+m[2]])),\n"
    "F=(a,t)=>{const v=a[0]+(a[1]-a[0])*t/1e4,d=(a[1]-a[0])/1e4;return a[2]?(+(10**v).toPrecision(4)).toString():"
    "String(+v.toFixed(Math.min(9,Math.max(0,Math.ceil(-Math.log10(d))))))},\n"
    "near=(l,x)=>l.reduce((b,p)=>!b||Math.abs(b[0]-x)>=Math.abs(p[0]-x)?p:b,null),\n"
    "show=x=>{const n=L.map(l=>near(l,x)),b=near(n.filter(p=>p),x);if(!b)return;at=b[0];\n"
    "h.setAttribute('d','M'+at+' 0V10000');h.style.visibility='visible';\n"
    "n.forEach((p,k)=>o[k].textContent=p?' '+F(Y,1e4-p[1]):'');o[o.length-1].textContent=F(X,at)};\n"
    "let at=1e4;\n"
    "s.addEventListener('pointermove',e=>{const r=s.getBoundingClientRect();show((e.clientX-r.left)/r.width*1e4)});\n"
    "s.addEventListener('keydown',e=>{const d={ArrowLeft:-1,ArrowRight:1}[e.key];if(!d)return;e.preventDefault();\n"
    "const q=L.flat().map(p=>p[0]).filter(x=>(x-at)*d>0);if(q.length)show(d>0?Math.min(...q):Math.max(...q))})}\n"
    /* Attention: data-w of a small figure has two hexadecimal digits for each weight, row by row. */
    "for(const s of document.querySelectorAll('[data-a]')){\n"
    "const g=[...s.querySelectorAll('.q')],[a,b,row]=s.dataset.a.split(' ').map(Number),f=s.closest('figure'),\n"
    "t=f.nextElementSibling,all=[...t.querySelectorAll('.b')];\n"
    "const show=c=>{const w=c.dataset.w,n=w.length/2/g.length;\n"
    "g.forEach((q,i)=>{q.querySelectorAll('path').forEach(p=>p.remove());\n"
    "for(let j=0;n>j;j++){const v=parseInt(w.substr(2*(i*n+j),2),16)/255;if(v>=.03){\n"
    "const p=document.createElementNS(s.namespaceURI,'path');p.setAttribute('d','M'+a+' '+(i*row+11)+'L'+b+' '+(j*row+"
    "11));\n"
    "p.setAttribute('stroke','var(--c0)');p.setAttribute('stroke-width',1+2*v);p.setAttribute('stroke-opacity',v);"
    "q.append(p)}}});\n"
    "all.forEach(x=>x.querySelector('rect').setAttribute('stroke',x===c?'var(--fg)':'none'));\n"
    "f.querySelector('output').textContent=c.getAttribute('aria-label')};\n"
    "all.forEach(c=>{c.addEventListener('click',()=>show(c));\n"
    "c.addEventListener('keydown',e=>{if(e.key==='Enter'||e.key===' '){e.preventDefault();show(c)}})})}\n"
    /* Maps: data-n of a word has its neighbours, "index similarity", nearest first. */
    "for(const s of document.querySelectorAll('svg.map')){\n"
    "const f=s.parentNode,i=f.querySelector('input'),o=f.querySelector('output'),p=[...s.querySelectorAll('.b')],\n"
    "name=k=>p[k].querySelector('text').textContent,mark=l=>p.forEach((c,k)=>c.classList.toggle('u',l.includes(k))),\n"
    "near=k=>{const n=(p[k].dataset.n||'').split(',').filter(x=>x).map(x=>x.split(' ').map(Number));\n"
    "mark([k,...n.map(x=>x[0])]);\n"
    "o.textContent=name(k)+(n.length?': '+n.map(x=>name(x[0])+' '+x[1].toFixed(2)).join(', '):'')};\n"
    "p.forEach((c,k)=>{c.addEventListener('click',()=>near(k));\n"
    "c.addEventListener('keydown',e=>{if(e.key==='Enter')near(k)})});\n"
    "i.addEventListener('input',()=>{const q=i.value.toLowerCase(),l=q?[...p.keys()].filter(k=>name(k).toLowerCase()"
    ".includes(q)):[],\n"
    "exact=l.find(k=>name(k).toLowerCase()===q);\n"
    "if(exact!==undefined)near(exact);else{mark(l);o.textContent=q?l.length+' of '+p.length+' words':''}})}\n"
    /* What needs the script is hidden without it. */
    "document.querySelectorAll('.j').forEach(x=>x.hidden=false);\n"
    "</script>\n";
/* SHA-256 of what is between the tags, in base64; unit.test_report prints it if it is wrong. */
static const char hash[] = "ndPMRllyXlMxBqdOQQEVajasgzzs3Wn4DMHD3QhMaIg=";

const char *tn__report_style(void) { return style; }
const char *tn__report_script(void) { return script; }

void tn__report_head(tn_string *to, bool scripted, int refresh)
{
    char text[256];
    tn_string_add(to, tn_text_of("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                                 "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"));
    snprintf(text, sizeof text,
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline';"
             "img-src data:%s%s%s\">\n",
             scripted ? ";script-src 'sha256-" : "", scripted ? hash : "", scripted ? "'" : "");
    tn_string_add(to, tn_text_of(text));
    snprintf(text, sizeof text, "<meta http-equiv=\"refresh\" content=\"%d\">\n", refresh);
    if (refresh) tn_string_add(to, tn_text_of(text));
}
