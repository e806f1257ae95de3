// The tables: jobs beside their optimum, missing ranks, events, the busiest links, and the details of
// what is selected.

import { element, percentText, rateText, timeText } from './text.js';

const STATES = { running: 'good', starting: '', recovering: 'doubt', failed: 'bad', ending: 'faint' };

function table(heads, rows) {
    const head = element('tr', '', null, ...heads.map(([text, kind]) => {
        const cell = element('th', kind || '', text);
        cell.scope = 'col';
        return cell;
    }));
    return element('table', '', null, element('thead', '', null, head), element('tbody', '', null, ...rows));
}

function row(...cells) {
    return element('tr', '', null, ...cells);
}

function names(list, more) {
    return list.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

// A meter beside its text: the part of the optimum.
function part(value, text) {
    const meter = element('meter');
    meter.min = 0;
    meter.max = 1;
    meter.value = Math.min(1, value || 0);
    meter.setAttribute('aria-label', text);
    return meter;
}

function planRow(job, plan, lead) {
    const measured = job.measured.find((one) => one.collective === plan.collective);
    const rate = measured ? measured.rate : null;
    const value = rate !== null && plan.optimum ? rate / plan.optimum : null;
    const reached = element('td', 'number', rate !== null ? `${rateText(rate)} ` : '-');
    if (value !== null) reached.append(part(value, `${percentText(value)} of the optimum`), ` ${percentText(value)}`);
    const kept = plan.optimum && plan.plan ? ` (${percentText(plan.plan / plan.optimum)})` : '';
    return row(...lead, element('td', '', plan.root ? `${plan.collective} from ${plan.root}` : plan.collective),
        element('td', 'number', rateText(plan.optimum)), element('td', 'number', rateText(plan.plan) + kept), reached);
}

// One row for each plan, and one with what is wrong.
function jobRows(job) {
    const title = element('td', '', `${job.job}${job.name ? ` ${job.name}` : ''}`);
    const absent = job.ranks - job.joined, wrong = [];
    const rows = job.plans.map((plan, i) => planRow(job, plan, i > 0 ? [element('td'), element('td'), element('td')] :
        [title, element('td', STATES[job.state] || '', job.state), element('td', 'number', `${job.joined} of ${job.ranks}`)]));
    if (job.text) wrong.push(element('div', 'faint', job.text));
    if (absent > 0 && job.joined > 0)
        wrong.push(element('div', 'doubt', `not joined: ${names(job.missing, absent - job.missing.length)}`));
    if (wrong.length > 0) {
        const cell = element('td', '', null, ...wrong);
        cell.colSpan = 6;
        rows[rows.length - 1].className = 'open';
        rows.push(element('tr', 'more', null, element('td'), cell));
    }
    return rows;
}

export function jobsTable(jobs) {
    if (jobs.length === 0) return element('p', 'faint', 'No jobs. `banyan job create` makes one.');
    return table([['Job'], ['State'], ['Joined', 'number'], ['Collective'], ['Optimum', 'number'], ['Plan', 'number'], ['Measured', 'number']],
        jobs.flatMap(jobRows));
}

// Trees whose oldest chunk waits for nodes.
export function waitingTable(waiting, fabric) {
    if (waiting.length === 0) return element('span');
    return table([['Waiting at'], ['Job'], ['Tree', 'number'], ['For']], waiting.map((wait) => row(
        element('td', '', fabric.nodes[wait.node].name), element('td', '', String(wait.job)), element('td', 'number', String(wait.tree)),
        element('td', 'doubt', wait.missing.length > 0 ? wait.missing.join(', ') : wait.waits_for))));
}

const GRADES = { good: ['good', '\u2713'], plain: ['', '\u00b7'], bad: ['bad', '\u2717'] };

export function eventsTable(events) {
    if (events.length === 0) return element('p', 'faint', 'No events since banyand started.');
    return table([['Time'], [''], ['Event']], events.map((event) => row(element('td', 'time', timeText(event.time)),
        element('td', GRADES[event.grade][0], GRADES[event.grade][1]), element('td', GRADES[event.grade][0], event.text))));
}

export function linkName(fabric, l) {
    const [a, b] = fabric.links[l];
    return `${fabric.nodes[a].name} \u2013 ${fabric.nodes[b].name}`;
}

function loadText(rate, capacity) {
    return capacity && rate !== null ? `${rateText(rate)} (${percentText(rate / capacity)})` : rateText(rate);
}

export function linkState(fabric, live, l) {
    const [a, b] = fabric.links[l];
    if (live.links_down.includes(l)) return ['bad', 'down'];
    if (live.nodes_down.includes(a) || live.nodes_down.includes(b)) return ['bad', 'its switch is down'];
    if (live.links_distrusted.includes(l)) return ['doubt', 'distrusted'];
    return ['', 'up'];
}

// Links that are down or distrusted first, then the busiest.
export function linksTable(fabric, live, most) {
    const value = (l) => Math.max(...[0, 1].map((side) => (live.load[2 * l + side] || 0) / (fabric.links[l][2 + side] || 1e9)));
    const bad = new Set([...live.links_down, ...live.links_distrusted]);
    const order = fabric.links.map((_, l) => l).map((l) => [bad.has(l) ? 1 : 0, value(l), l])
        .sort((x, y) => y[0] - x[0] || y[1] - x[1] || x[2] - y[2]).slice(0, most);
    return table([['Link'], ['State'], ['Forth', 'number'], ['Back', 'number']], order.map(([, , l]) => {
        const [kind, state] = linkState(fabric, live, l);
        return row(element('td', '', linkName(fabric, l)), element('td', kind, state), element('td', 'number', loadText(live.load[2 * l], fabric.links[l][2])),
            element('td', 'number', loadText(live.load[2 * l + 1], fabric.links[l][3])));
    }));
}

function nodeState(live, n, host) {
    if (live.nodes_down.includes(n)) return ['bad', 'does not answer'];
    if (live.nodes_distrusted.includes(n)) return ['doubt', 'distrusted: it dropped packets silently'];
    if (host) return ['', 'host'];
    return live.nodes_up.includes(n) ? ['good', 'switch, up'] : ['faint', 'switch, no answer yet'];
}

function nodeDetails(fabric, live, n, linksOf) {
    const node = fabric.nodes[n], [kind, state] = nodeState(live, n, node.host);
    const rows = linksOf[n].slice(0, 16).map((l) => {
        const side = fabric.links[l][0] === n ? 0 : 1, peer = fabric.nodes[fabric.links[l][1 - side]].name;
        const [bad, text] = linkState(fabric, live, l);
        if (bad) return row(element('td', '', peer), element('td', bad, text), element('td'));
        return row(element('td', '', peer), element('td', 'number', rateText(live.load[2 * l + side])), element('td', 'number', rateText(live.load[2 * l + 1 - side])));
    });
    const all = [element('h3', '', node.name), element('div', kind, state), table([['Link to'], ['Sends', 'number'], ['Receives', 'number']], rows)];
    if (linksOf[n].length > 16) all.push(element('div', 'faint', `and ${linksOf[n].length - 16} more links`));
    for (const job of live.jobs)
        if (node.host && job.joined > 0 && job.missing.includes(node.name)) all.push(element('div', 'doubt', `has not joined job ${job.job}`));
    for (const wait of live.waiting)
        if (wait.missing.includes(node.name)) all.push(element('div', 'doubt', `job ${wait.job} waits for it at ${fabric.nodes[wait.node].name}`));
    return all;
}

function linkDetails(fabric, live, l) {
    const [a, b, forth, back] = fabric.links[l], [kind, state] = linkState(fabric, live, l);
    const one = (from, to, rate, capacity) => row(element('td', '', `${fabric.nodes[from].name} \u2192 ${fabric.nodes[to].name}`),
        element('td', 'number', loadText(rate, capacity)), element('td', 'number', rateText(capacity)));
    return [element('h3', '', linkName(fabric, l)), element('div', kind || 'good', state),
        table([['Direction'], ['Load', 'number'], ['Capacity', 'number']], [one(a, b, live.load[2 * l], forth), one(b, a, live.load[2 * l + 1], back)])];
}

// What is selected: a list of elements.
export function detailsOf(fabric, live, choice, linksOf) {
    if (!choice || !live) return [];
    return choice.node !== undefined ? nodeDetails(fabric, live, choice.node, linksOf) : linkDetails(fabric, live, choice.link);
}
