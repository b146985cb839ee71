// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// The page asks for its state once a second and shows it. What comes from nodes is shown
// as text, never as markup.
'use strict';
(() => {
  const period = 1000, patience = 5000, kept = 120;
  const $ = (id) => document.getElementById(id);

  // make returns an element with attributes and children.
  function make(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== undefined && value !== null && value !== false) e.setAttribute(name, value);
    }
    e.append(...children.filter((c) => c !== null && c !== undefined).map((c) => (c instanceof Node ? c : String(c))));
    return e;
  }

  // set changes a text only if it differs, so that a selection stays.
  function set(e, text) { if (e.textContent !== text) e.textContent = text; }

  // changed tells whether a part differs from what was shown last.
  const shown = new Map();
  function changed(part, value) {
    const text = JSON.stringify(value);
    if (shown.get(part) === text) return false;
    shown.set(part, text);
    return true;
  }

  // amount is a number with three digits and a prefix, such as 1.23 M.
  function amount(n) {
    for (const [size, prefix] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
      if (n >= size * 0.9995) return `${short(n / size)} ${prefix}`;
    }
    return `${short(n)} `;
  }
  function short(n) { return n >= 99.95 ? n.toFixed(0) : n >= 9.995 || n === 0 ? String(+n.toFixed(1)) : String(+n.toFixed(2)); }
  const rate = (n) => (n >= 10 ? n.toFixed(0) : short(n));
  const bytes = (n) => `${amount(n)}B`;
  const ms = (x) => (x === null || x === undefined ? '-' : x >= 1000 ? `${short(x / 1000)} s` : `${short(x)} ms`);
  const count = (n) => n.toLocaleString('en');
  function since(millis) {
    const s = Math.floor(millis / 1000);
    return s < 120 ? `${s} s` : s < 7200 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`;
  }

  // --- commands, of a demonstration only

  let token = null;
  async function command(body) {
    try {
      if (token === null) {
        const answer = await fetch('/page/token');
        if (!answer.ok) throw new Error((await answer.json()).error);
        token = (await answer.json()).token;
      }
      const answer = await fetch('/page/do', {
        method: 'POST', headers: {'Content-Type': 'application/json', 'X-Kvdemo-Token': token}, body: JSON.stringify(body),
      });
      if (answer.status === 403) token = null;
      const said = await answer.json();
      fail(answer.ok ? '' : said.error);
    } catch (e) {
      fail(`The demonstration does not answer: ${e.message}`);
    }
    refresh();
  }
  function fail(text) { set($('failure'), text); $('failure').hidden = text === ''; }

  // --- parts of the page

  function tiles(s) {
    const up = s.members.filter((m) => m.state === 'up').length;
    const asked = s.members.filter((m) => m.state !== 'unasked').length;
    const rows = [
      ['leader', s.leader ? `node ${s.leader}` : 'none', `term ${s.term}`],
      ['nodes up', `${up} of ${asked}`, ''],
      ['commit index', count(s.commit), ''],
      ['writes', amount(s.writesPerSecond).trim(), '/s'],
      ['reads', amount(s.readsPerSecond).trim(), '/s'],
      ['on all links', bytes(s.bytesPerSecond), '/s'],
    ];
    const box = $('summary');
    if (box.children.length !== rows.length) {
      box.replaceChildren(...rows.map(([name]) => make('div', {'data-tile': name}, make('div', {class: 'name'}, name), make('div', {class: 'value'}))));
    }
    rows.forEach(([, value, unit], i) => {
      if (changed(`tile${i}`, [value, unit])) {
        box.children[i].lastChild.replaceChildren(value, unit ? make('small', {}, unit === '/s' ? '/s' : ` ${unit}`) : '');
      }
    });
  }

  // banner says the one thing that stops all writes.
  function banner(s) {
    const voters = s.members.filter((m) => m.vote === 'voter');
    const up = voters.filter((m) => m.state === 'up').length;
    $('banner').hidden = s.missing === 0;
    const more = `${s.missing} more ${s.missing === 1 ? 'node has' : 'nodes have'} to come back`;
    set($('banner'), s.missing === 0 ? '' : `No majority: ${up} of ${voters.length} voters are up. Nothing can be written, and nothing acknowledged is lost. ${more}.`);
  }

  // --- writes a second, and what happened meanwhile

  const svg = 'http://www.w3.org/2000/svg';
  function draw(name, attributes) {
    const e = document.createElementNS(svg, name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    return e;
  }

  // markOf returns the kind of mark that an event gets, and a short text.
  function markOf(e) {
    const node = e.text.match(/^node (\d+)/);
    if (!node) return null;
    if (e.kind === 'election') return ['election', `★ ${node[1]}`];
    if (/was killed|was paused|does not answer|ended by itself/.test(e.text)) return ['kill', `✕ ${node[1]}`];
    return null;
  }

  function writes(s) {
    const [top, plot, ago] = $('history').children;
    const samples = s.history;
    const first = samples.length ? samples[0].at : s.at;
    const span = Math.max(20, Math.ceil((s.at - first) / 10000) * 10) * 1000; // as long as there is a line
    const most = Math.max(10, ...samples.map((x) => x.writes));
    const marks = s.events.map((e) => [e, markOf(e)]).filter(([e, m]) => m && e.at > s.at - span).reverse();
    if (!changed('history', [s.at, samples, marks])) return;
    set(top, amount(most).trim());
    set(ago, `${span / 1000} s ago`);
    const x = (at) => (100 * (at - s.at + span)) / span;
    const texts = {}; // where the last text of a kind is
    let line = '';
    for (const p of samples) line += `${line ? 'L' : 'M'}${x(p.at).toFixed(2)} ${(39 - (37 * p.writes) / most).toFixed(2)}`;
    const drawing = draw('svg', {viewBox: '0 0 100 40', preserveAspectRatio: 'none', role: 'img'});
    drawing.setAttribute('aria-label', `${samples.length ? amount(samples[samples.length - 1].writes).trim() : 'no'} writes a second now`);
    drawing.append(draw('path', {class: 'floor', d: 'M0 39.5H100'}), draw('path', {class: 'trace', d: line}));
    plot.replaceChildren(drawing, ...marks.map(([e, [kind, text]]) => {
      const at = x(e.at), room = !((at - texts[kind]) * plot.clientWidth < 3400); // 34 points
      if (room) texts[kind] = at;
      const mark = make('span', {class: `mark ${kind} ${at > 85 ? 'late' : ''}`, title: e.text, 'data-mark': e.number}, room ? make('span', {}, text) : null);
      mark.style.left = `${at}%`;
      return mark;
    }));
  }

  const cards = new Map();
  function members(s) {
    const box = $('members');
    const ids = new Set(s.members.map((m) => m.id));
    for (const [id, card] of cards) if (!ids.has(id)) { card.remove(); cards.delete(id); }
    for (const m of s.members) {
      let card = cards.get(m.id);
      if (!card) {
        card = make('article', {'data-node': m.id}, make('div', {class: 'top'}, make('span', {class: 'id'}, `node ${m.id}`), make('span', {class: 'role'})),
          make('dl'), make('p', {class: 'why', hidden: ''}), buttons(m.id));
        cards.set(m.id, card);
        box.append(card);
      }
      member(card, m, s);
    }
  }

  function member(card, m, s) {
    const [top, list, why, row] = card.children;
    const up = m.state === 'up';
    const leads = up && m.id === s.leader;
    const said = up ? (leads ? 'leader' : m.role) : {unasked: 'not asked', paused: 'paused by you'}[m.state] || m.state;
    const mark = up ? (leads ? '★ ' : m.role === 'follower' ? '● ' : '◐ ') : m.state === 'paused' ? '❚❚ ' : m.state === 'down' ? '✕ ' : '? ';
    card.className = `card ${m.state} ${leads ? 'leader' : ''}`;
    card.dataset.state = m.state;
    set(top.lastChild, mark + said + (m.vote === 'none' && m.state !== 'unasked' ? ', no member' : ''));
    const served = m.served.roster + m.served.lease;
    const facts = m.state === 'unasked' && !m.pid ? [['reports', 'not configured']] : [
      ['applied', count(m.applied)],
      ['behind', m.behind === 0 ? 'no entry' : m.behind === 1 ? '1 entry' : `${count(m.behind)} entries`],
      ['answers', !up ? '-' : m.answers ? (leads ? 'by lease' : 'by roster') : m.named ? 'not yet' : 'asks leader'],
      ['so far', `${count(served)} reads`],
      ['writes', up ? `${rate(m.writesPerSecond)} /s` : '-'],
      ['reads', up ? `${rate(m.readsPerSecond)} /s` : '-'],
      ['sends', up ? `${bytes(m.sentPerSecond)}/s` : '-'],
      ['up for', up ? since(m.uptimeMs) : '-'],
      ['sync', up && m.syncUs ? `${(m.syncUs / 1000).toFixed(1)} ms` : '-'],
      ['weight', up ? m.weight : '-'],
    ];
    if (changed(`facts${m.id}`, facts)) list.replaceChildren(...facts.map(([name, value]) => make('div', {'data-fact': name}, make('dt', {}, name), make('dd', {}, value))));
    const trouble = m.logLost ? 'its log was lost: replace the node' : m.stalled || (m.state === 'down' ? m.why : '') || '';
    set(why, trouble);
    why.hidden = trouble === '';
    const c = s.controls;
    row.hidden = !c;
    if (!c) return;
    const runs = c.running.includes(m.id), paused = c.paused.includes(m.id);
    row.children[0].hidden = !runs;
    row.children[1].hidden = runs;
    row.children[2].hidden = !runs || paused;
    row.children[3].hidden = !runs || !paused;
    for (const b of row.children) b.disabled = Boolean(c.busy);
  }

  function buttons(id) {
    const row = make('div', {class: 'buttons', hidden: ''});
    for (const [what, text] of [['kill', 'Kill'], ['start', 'Start'], ['pause', 'Pause'], ['resume', 'Resume']]) {
      const b = make('button', {type: 'button', class: what === 'kill' ? 'danger' : null, 'data-do': what, 'aria-label': `${text} node ${id}`}, text);
      b.addEventListener('click', () => command({do: what, node: id}));
      row.append(b);
    }
    return row;
  }

  function roster(s) {
    const r = s.roster;
    let text = 'These nodes run without roster leases: every linearizable read asks the leader.';
    if (r && r.retired) text = 'Roster leases are switched off.';
    else if (r && (!r.named || r.named.length === 0)) text = 'Roster: no node is named to answer reads; the leader answers by its lease.';
    else if (r) {
      const spans = r.named.map((p) => `nodes ${p.nodes.join(' ')} for ${p.from === '' && p.to === '' ? 'all keys' : `keys from ${p.from || 'the first'} to ${p.to || 'the last'}`}`);
      text = `Roster ${r.number} of term ${r.term}: ${spans.join('; ')}.`;
    }
    set($('roster'), text);
  }

  function entries(s) {
    const ids = s.members.filter((m) => m.vote !== 'none' || m.state === 'up').map((m) => m.id);
    const up = new Set(s.members.filter((m) => m.state === 'up').map((m) => m.id));
    $('no-entries').hidden = s.entries.length > 0;
    if (!changed('entries', [s.entries, ids, [...up]])) return;
    if (s.entries.length === 0) { $('entries').replaceChildren(); return; }
    const head = make('tr', {}, make('th', {scope: 'col'}, 'entry'), ...ids.map((id) => make('th', {scope: 'col'}, id)), make('th', {scope: 'col'}, 'bytes'));
    const rows = s.entries.map((e) => {
      const cells = new Map(e.cells.map((c) => [c.node, c]));
      return make('tr', {'data-entry': e.index}, make('th', {scope: 'row'}, e.index),
        ...ids.map((id) => make('td', {}, units(e, cells.get(id), up.has(id), id))),
        make('td', {class: 'size'}, bytes(e.bytes)));
    });
    $('entries').replaceChildren(make('thead', {}, head), make('tbody', {}, ...rows));
  }

  // units draws what a member holds of an entry.
  function units(e, cell, up, id) {
    const own = cell ? cell.own : 0;
    const have = cell ? Math.max(own, e.d - cell.missing) : 0;
    const text = cell ? `node ${id} has ${own} of ${e.d} units in its log, and ${have - own} from others${e.encoder === id ? '; it coded the entry' : ''}`
      : up ? `node ${id} lacks the entry` : `not known of node ${id}`;
    const box = make('span', {class: `units ${e.d > 16 ? 'rows3' : e.d > 6 ? 'rows2' : ''}`, role: 'img', title: text, 'aria-label': text});
    for (let i = 0; i < e.d; i++) box.append(make('i', {class: `unit ${!cell && !up ? 'unknown' : i < own ? 'own' : i < have ? 'got' : 'none'}`}));
    return box;
  }

  const cells = new Map();
  function links(s) {
    const ids = s.members.map((m) => m.id);
    const demo = Boolean(s.controls);
    if (changed('links', [ids, demo])) {
      cells.clear();
      const head = make('tr', {}, make('th', {scope: 'col'}, 'from'), ...ids.map((id) => make('th', {scope: 'col'}, `to ${id}`)));
      const rows = ids.map((from) => make('tr', {}, make('th', {scope: 'row'}, from), ...ids.map((to) => {
        if (from === to) return make('td');
        const cell = make(demo ? 'button' : 'div', {class: 'cell', type: demo ? 'button' : null, 'data-link': `${from}-${to}`});
        if (demo) cell.addEventListener('click', () => openShape(from, to));
        cells.set(`${from}-${to}`, cell);
        return make('td', {}, cell);
      })));
      $('links').replaceChildren(make('thead', {}, head), make('tbody', {}, ...rows));
      set($('links-note'), demo ? 'A second, from the row to the column. Press a link to shape it.' : 'A second, from the row to the column.');
    }
    const most = Math.max(1, ...s.links.map((l) => l.perSecond));
    const known = new Map(s.links.map((l) => [`${l.from}-${l.to}`, l]));
    const states = new Map(s.members.map((m) => [m.id, m.state]));
    for (const [name, cell] of cells) link(cell, name, known.get(name), states, most);
  }

  function link(cell, name, l, states, most) {
    const [from, to] = name.split('-').map(Number);
    const sender = states.get(from) === 'up';
    let rate = '?', below = '';
    if (l && sender) {
      rate = bytes(l.perSecond);
      below = l.connected ? (l.queued > 65536 ? `${bytes(l.queued)} wait` : '') : 'cut';
    } else if (l) rate = '-';
    if (l && l.shape) below = `${l.shape.bytesPerSecond ? `${bytes(l.shape.bytesPerSecond)}/s` : ''} ${l.shape.delayMs ? `+${l.shape.delayMs} ms` : ''}`.trim();
    if (!changed(`link${name}`, [rate, below, l && l.perSecond > most / 3, l && l.perSecond > most / 50])) return;
    const busy = l && sender && l.connected ? l.perSecond : 0;
    cell.className = `cell ${l && l.shape ? 'shaped' : below === 'cut' ? 'off' : ''} ${busy > most / 3 ? 'much' : busy > most / 50 ? 'some' : ''}`;
    cell.replaceChildren(rate, below ? make('small', {}, below) : '');
    cell.setAttribute('title', l ? `node ${from} to node ${to}: ${bytes(l.total)} in all` : `node ${from} is not asked`);
  }

  let shaping = null;
  function openShape(from, to) {
    if (state && state.controls && state.controls.busy) { fail(state.controls.busy); return; }
    shaping = {from, to};
    set($('shape-title'), `Link from node ${from} to node ${to}`);
    const l = state.links.find((x) => x.from === from && x.to === to);
    $('shape-rate').value = String((l && l.shape && l.shape.bytesPerSecond) || 0);
    $('shape-delay').value = String((l && l.shape && l.shape.delayMs) || 0);
    $('shape').returnValue = '';
    $('shape').showModal();
  }
  $('shape').addEventListener('close', () => {
    if ($('shape').returnValue !== 'set' || !shaping) return;
    command({do: 'shape', node: shaping.from, to: shaping.to, shape: {bytesPerSecond: Number($('shape-rate').value), delayMs: Number($('shape-delay').value)}});
  });

  const traces = new Map();
  function gossip(s) {
    const coded = s.members.filter((m) => m.coding);
    const box = $('gossip');
    if (changed('gossip', coded.map((m) => m.id))) {
      box.replaceChildren(...(coded.length ? [] : ['No node codes entries.']));
      for (const m of coded) {
        const drawing = draw('svg', {viewBox: `0 0 ${kept} 20`, preserveAspectRatio: 'none', 'aria-hidden': 'true'});
        drawing.append(draw('path', {class: 'floor', d: `M0 19.5H${kept}`}), draw('path', {class: 'trace'}));
        box.append(make('span', {}, `node ${m.id}`), drawing, make('span', {class: 'figure', 'data-lag': m.id}));
      }
    }
    let most = 4;
    for (const m of coded) {
      const past = traces.get(m.id) || [];
      past.push(m.state === 'up' ? m.coding.lag : null);
      traces.set(m.id, past.slice(-kept));
      most = Math.max(most, ...past.filter((x) => x !== null));
    }
    coded.forEach((m, i) => {
      const past = traces.get(m.id);
      let path = '', pen = 'M';
      past.forEach((x, j) => {
        if (x === null) { pen = 'M'; return; }
        path += `${pen}${kept - past.length + j} ${(19 - 17 * Math.min(1, x / most)).toFixed(1)}`;
        pen = 'L';
      });
      box.children[3 * i + 1].lastChild.setAttribute('d', path);
      const figure = box.children[3 * i + 2];
      const text = [m.state === 'up' ? `${count(m.coding.lag)} ${m.coding.lag === 1 ? 'entry' : 'entries'}` : m.state,
        m.coding.stuckAt ? ` stuck at ${m.coding.stuckAt}` : ` waits ${ms(m.coding.delayMs)}, joins ${bytes(m.coding.joinedPerSecond)}/s`];
      if (changed(`lag${m.id}`, text)) figure.replaceChildren(text[0], make('small', {}, text[1]));
    });
  }

  function latency(s) {
    const l = s.latency, box = $('latency');
    if (box.children.length !== l.writes.length) {
      box.replaceChildren(...l.writes.map((_, i) => make('div', {class: 'bucket'},
        make('i', {class: 'bar writes'}), make('i', {class: 'bar reads'}), make('span', {}, i < l.boundsMs.length ? tick(l.boundsMs[i]) : 'more'))));
    }
    const most = Math.max(1, ...l.writes, ...l.reads);
    l.writes.forEach((w, i) => {
      const b = box.children[i];
      b.children[0].style.height = `${(100 * w) / most}%`;
      b.children[1].style.height = `${(100 * l.reads[i]) / most}%`;
      b.children[0].style.visibility = w ? 'visible' : 'hidden';
      b.children[1].style.visibility = l.reads[i] ? 'visible' : 'hidden';
      b.title = `${i < l.boundsMs.length ? `up to ${ms(l.boundsMs[i])}` : 'longer'}: ${count(w)} writes, ${count(l.reads[i])} reads`;
    });
    set($('quantiles'), `writes p50 ${ms(l.writeP50)}, p99 ${ms(l.writeP99)}; reads p50 ${ms(l.readP50)}, p99 ${ms(l.readP99)}; ${Math.round(l.seconds)} s`);
  }
  // tick is the text at a bar: every third, or the texts would touch.
  const tick = (x) => (!/^1|^0\.0*1/.test(String(x)) ? '' : x < 1 ? `${x * 1000} µs` : x < 1000 ? `${x} ms` : `${x / 1000} s`);

  function events(s) {
    if (!changed('events', s.events)) return;
    $('events').replaceChildren(...s.events.map((e) => make('li', {class: e.kind, 'data-event': e.number},
      make('time', {datetime: new Date(e.at).toISOString()}, new Date(e.at).toLocaleTimeString('en-GB')),
      make('span', {class: 'kind'}, e.kind), make('span', {class: 'text'}, e.text))),
    ...(s.events.length ? [] : [make('li', {}, make('span', {class: 'text'}, 'nothing has happened'))]));
  }

  function controls(s) {
    const c = s.controls;
    $('controls').hidden = !c;
    if (!c) return;
    set($('busy'), c.busy ? `${c.busy[0].toUpperCase()}${c.busy.slice(1)}.` : '');
    $('busy').hidden = !c.busy;
    $('policy-choice').hidden = c.policies.length === 0;
    for (const [id, value] of [['policy', c.policy], ['load', String(c.writes)]]) {
      const e = $(id);
      e.disabled = Boolean(c.busy);
      if (document.activeElement !== e && e.value !== value) e.value = value;
    }
  }
  $('policy').addEventListener('change', (e) => command({do: 'policy', policy: e.target.value}));
  $('load').addEventListener('change', (e) => command({do: 'load', writes: Number(e.target.value)}));

  function groups(s) {
    $('group-choice').hidden = s.groups < 2;
    if (changed('groups', s.groups)) {
      $('group').replaceChildren(...Array.from({length: s.groups}, (_, i) => make('option', {value: i + 1}, i + 1)));
      $('group').value = String(group);
    }
  }
  $('group').addEventListener('change', (e) => { group = Number(e.target.value); traces.clear(); refresh(); });

  // --- the loop

  let group = 1, state = null, timer = null, asking = false, again = false, heard = performance.now();
  async function refresh() {
    if (asking) { again = true; return; }
    asking = true;
    clearTimeout(timer);
    try {
      const answer = await fetch(`/page/state?group=${group}`, {signal: AbortSignal.timeout(patience)});
      if (!answer.ok) throw new Error((await answer.json()).error);
      state = await answer.json();
      heard = performance.now();
      show(state);
    } catch (e) {
      if (performance.now() - heard > 2500) {
        $('live').className = 'stale';
        set($('live'), `no answer for ${Math.round((performance.now() - heard) / 1000)} s: what is shown is old`);
      }
    } finally {
      asking = false;
      timer = setTimeout(refresh, again ? 50 : document.hidden ? 10 * period : period);
      again = false;
    }
  }
  document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });

  function show(s) {
    $('live').className = '';
    set($('live'), `as of ${new Date(s.at).toLocaleTimeString('en-GB')}`);
    set($('where'), s.self ? `cluster ${s.cluster}, as node ${s.self} sees it` : `demonstration of ${s.members.length} nodes`);
    document.title = s.missing ? 'no majority - kvdemo' : s.leader ? `node ${s.leader} leads - kvdemo` : 'no leader - kvdemo';
    for (const part of [groups, banner, tiles, writes, controls, members, roster, entries, links, gossip, latency, events]) part(s);
    document.documentElement.dataset.shown = String(s.at);
  }
  refresh();
})();
