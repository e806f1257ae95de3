// The live page: requests the state of banyand every 400 ms, and shows it.

import { Chart, drawLink } from './chart.js';
import { CLASSES, FabricView, WIDTHS } from './fabric.js';
import { detailsOf, eventsTable, jobsTable, linksTable, waitingTable } from './tables.js';
import { color, element, openCanvas, percentText, rateText, timeText } from './text.js';

const PERIOD_MS = 400; // between two requests
const HIDDEN_MS = 5000; // the same while the page is not visible
const PATIENCE_MS = 3000; // for an answer
const EVENTS_MAX = 500;
const LINKS_SHOWN = 12;
const WAIT_MS = 1500; // a chunk that waits for less is only under way

const get = (id) => document.getElementById(id);
const page = { fabric: null, live: null, events: [], choice: null, hour: null, askedHour: 0, waits: new Map(), shown: new Map() };
const view = new FabricView(get('fabric'), (choice) => choose(choice));
const chart = new Chart(get('history'), get('history-text'));

async function ask(path) {
    const answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS), cache: 'no-store' });
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.json();
}

// Replaces the content of an element only if it has changed, so that scrolling and reading aloud are
// not disturbed.
function replace(id, data, make) {
    const key = JSON.stringify(data);
    if (page.shown.get(id) === key) return;
    page.shown.set(id, key);
    get(id).replaceChildren(...make());
}

function fact(name, value, kind) {
    return element('li', kind || '', null, `${name} `, element('b', '', value));
}

function showFacts(live) {
    const peak = live.load.reduce((most, rate, i) => {
        const capacity = page.fabric.links[i >> 1][2 + (i & 1)];
        return rate !== null && capacity ? Math.max(most, rate / capacity) : most;
    }, 0);
    const carried = live.load.reduce((sum, rate) => sum + (rate || 0), 0);
    const running = live.jobs.filter((job) => job.state === 'running').length;
    const facts = [
        ['switches', `${live.nodes_up.length} of ${live.switches} up`, live.nodes_down.length > 0 ? 'bad' : ''],
        ['links', live.links_down.length > 0 ? `${live.links_down.length} down` : `${page.fabric.links.length} up`, live.links_down.length > 0 ? 'bad' : ''],
        ['jobs', `${running} of ${live.jobs.length} running`, running < live.jobs.length ? 'doubt' : ''],
        ['traffic', rateText(carried)],
        ['highest load', percentText(peak)],
    ];
    const distrusted = live.nodes_distrusted.length + live.links_distrusted.length;
    if (distrusted > 0) facts.splice(2, 0, ['distrusted', `${distrusted}`, 'doubt']);
    if (live.changing) facts.push(['tables', 'being changed', 'doubt']);
    replace('facts', facts, () => facts.map((one) => fact(...one)));
}

function alarm(text) {
    get('alarm').hidden = text === '';
    if (get('alarm').textContent !== text) get('alarm').textContent = text;
}

function addEvents(events) {
    const last = page.events.length > 0 ? page.events[0].number : 0;
    page.events = [...events.filter((event) => event.number > last), ...page.events].slice(0, EVENTS_MAX);
}

function showDetails() {
    const elements = detailsOf(page.fabric, page.live, page.choice, view.linksOf);
    if (page.choice && page.choice.link !== undefined && page.hour) {
        const canvas = element('canvas');
        canvas.setAttribute('role', 'img');
        canvas.setAttribute('aria-label', 'load of this link in the last hour; dashed: back');
        elements.push(element('div', 'faint', 'The last hour (dashed: back)'), canvas);
    }
    const key = elements.map((one) => one.textContent);
    replace('details', [key, page.hour], () => elements);
    const canvas = get('details').querySelector('canvas');
    if (canvas && page.hour) drawLink(canvas, page.hour);
}

// Chunks that have waited for a while: those that were seen in earlier answers too.
function oldWaits(live) {
    const key = (wait) => `${wait.node} ${wait.job} ${wait.tree} ${wait.chunk}`;
    page.waits = new Map(live.waiting.map((wait) => [key(wait), page.waits.get(key(wait)) || live.time]));
    return live.waiting.filter((wait) => live.time - page.waits.get(key(wait)) >= WAIT_MS);
}

async function choose(choice) {
    page.choice = choice;
    page.hour = null;
    showDetails();
    await askHour(choice);
}

// The hour of the selected link.
async function askHour(choice) {
    page.askedHour = Date.now();
    if (!choice || choice.link === undefined || !page.fabric.keeps_links) return;
    try {
        const hour = await ask(`v1/history?link=${choice.link}`);
        if (page.choice && page.choice.link === hour.link) page.hour = hour;
        showDetails();
    } catch (error) {
        // The next choice tries again.
    }
}

// At the start, and after banyand has restarted.
async function load() {
    const [fabric, history] = await Promise.all([ask('v1/fabric'), ask('v1/history')]);
    fabric.nodes = fabric.nodes.map(([name, host, level, x, y]) => ({ name, host: host === 1, level, x, y }));
    page.fabric = fabric;
    page.events = history.events;
    page.choice = null;
    view.setFabric(fabric);
    chart.setSamples(history.samples);
    get('topology').textContent = fabric.topology;
    get('version').textContent = `banyand ${fabric.version}.`;
    document.title = `${fabric.topology} - banyan`;
}

function show(live) {
    live.waiting = oldWaits(live);
    page.live = live;
    addEvents(live.events);
    view.setState(live);
    chart.add(live.sample);
    showFacts(live);
    showDetails();
    if (page.hour && Date.now() - page.askedHour > page.hour.step_ms) askHour(page.choice);
    replace('jobs', [live.jobs, live.waiting], () => [jobsTable(live.jobs), waitingTable(live.waiting, page.fabric)]);
    replace('events', page.events.length > 0 ? page.events[0].number : 0, () => [eventsTable(page.events)]);
    replace('links', [live.load, live.links_down, live.links_distrusted, live.nodes_down], () => [linksTable(page.fabric, live, LINKS_SHOWN)]);
    get('clock').textContent = `Last answer at ${timeText(live.time)}.`;
    alarm(live.leads ? '' : 'banyand does not lead yet: it waits for its switches');
}

async function step() {
    try {
        const live = await ask('v1/live');
        if (!page.fabric || page.fabric.started !== live.started) await load();
        if (page.fabric.started === live.started) show(live);
        page.answered = Date.now();
    } catch (error) {
        const since = page.answered ? ` since ${timeText(page.answered)}; what is shown is from then` : '';
        alarm(`banyand does not answer${since}`);
    }
    clearTimeout(page.timer);
    page.timer = setTimeout(step, document.hidden ? HIDDEN_MS : PERIOD_MS);
}

// ---- colours ----

const THEMES = ['automatic', 'light', 'dark'];
const darkScreen = matchMedia('(prefers-color-scheme: dark)');

function storedTheme() {
    try {
        return localStorage.getItem('theme');
    } catch (error) {
        return null; // storage may be forbidden
    }
}

function drawLegend() {
    const names = ['idle', 'to 20%', 'to 40%', 'to 60%', 'to 80%', 'above', 'down', 'distrusted'];
    get('legend').replaceChildren(...names.map((name, i) => {
        const canvas = element('canvas'), item = element('li', '', null, canvas, name);
        get('legend').append(item);
        const { context, width, height } = openCanvas(canvas);
        context.strokeStyle = color(i < CLASSES ? `load-${i}` : i === CLASSES ? 'bad' : 'doubt');
        context.lineWidth = i < CLASSES ? WIDTHS[i] : 2.4;
        if (i >= CLASSES) context.setLineDash(i === CLASSES ? [7, 5] : [2, 4]);
        context.beginPath();
        context.moveTo(0, height / 2);
        context.lineTo(width, height / 2);
        context.stroke();
        return item;
    }));
}

function setTheme(theme) {
    page.theme = THEMES.includes(theme) ? theme : 'automatic';
    document.documentElement.toggleAttribute('data-dark', page.theme === 'dark' || (page.theme === 'automatic' && darkScreen.matches));
    get('theme').textContent = `Theme: ${page.theme}`;
    drawLegend();
    view.changed();
    chart.draw();
    if (page.live) showDetails();
}

get('theme').addEventListener('click', () => {
    setTheme(THEMES[(THEMES.indexOf(page.theme) + 1) % THEMES.length]);
    try {
        localStorage.setItem('theme', page.theme);
    } catch (error) {
        // It then lasts until the page is closed.
    }
});
darkScreen.addEventListener('change', () => setTheme(page.theme));
get('closer').addEventListener('click', () => view.zoom(1.4));
get('farther').addEventListener('click', () => view.zoom(1 / 1.4));
get('whole').addEventListener('click', () => view.fit());
get('series').addEventListener('change', (event) => chart.show(event.target.value));
document.addEventListener('visibilitychange', () => {
    if (!document.hidden) step();
});
setTheme(storedTheme());
step();
