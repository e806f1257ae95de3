// The picture of the fabric: links by their measured load, nodes by their state. The links are drawn
// once for each change into a picture of their own, in one path for each class; hovering and moving
// only copy that picture, so that thousands of links stay smooth.

import { placeNodes } from './layout.js';
import { color, openCanvas } from './text.js';

export const CLASSES = 6; // of loads: idle, then fifths of the capacity
export const WIDTHS = [1, 1.6, 2.2, 3, 4, 5.2];
const SETTLE_MS = 90; // the view is drawn sharply once it has been still for this long

// The class of a load: 0 idle or unknown, 5 at least 4/5 of the capacity.
export function classOf(rate, capacity, largest) {
    const part = capacity ? rate / capacity : largest ? rate / largest : 0;
    return part < 0.005 ? 0 : Math.min(CLASSES - 1, 1 + Math.floor(part * (CLASSES - 1)));
}

export class FabricView {
    // `choose` is called with what the pointer or the keyboard selects: {node}, {link} or null.
    constructor(canvas, choose) {
        this.canvas = canvas;
        this.choose = choose;
        this.fabric = null;
        this.picked = null;
        this.hovered = null;
        this.view = { scale: 1, x: 0, y: 0 };
        this.movedAt = -SETTLE_MS - 1;
        this.layer = document.createElement('canvas');
        this.drawnView = null;
        this.down = { nodes: new Set(), links: new Set() };
        this.distrusted = { nodes: new Set(), links: new Set() };
        this.load = [];
        new ResizeObserver(() => this.resize()).observe(canvas);
        canvas.addEventListener('pointermove', (event) => this.onMove(event));
        canvas.addEventListener('pointerdown', (event) => this.onPress(event));
        canvas.addEventListener('pointerup', () => { this.drag = null; });
        canvas.addEventListener('pointerleave', () => this.hover(null));
        canvas.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
        canvas.addEventListener('keydown', (event) => this.onKey(event));
        canvas.addEventListener('focus', () => this.redraw());
        canvas.addEventListener('blur', () => this.redraw());
    }

    setFabric(fabric) {
        this.fabric = fabric;
        this.linksOf = fabric.nodes.map(() => []);
        fabric.links.forEach(([a, b], l) => {
            this.linksOf[a].push(l);
            this.linksOf[b].push(l);
        });
        // Cables between the same nodes are drawn beside each other.
        const seen = new Map();
        this.lane = fabric.links.map(([a, b]) => {
            const key = Math.min(a, b) * fabric.nodes.length + Math.max(a, b), lane = seen.get(key) || 0;
            seen.set(key, lane + 1);
            return lane;
        });
        this.picked = this.hovered = this.classes = null;
        this.view = { scale: 1, x: 0, y: 0 };
        this.resize();
    }

    // The state of GET /v1/live.
    setState(live) {
        this.down = { nodes: new Set(live.nodes_down), links: new Set(live.links_down) };
        this.distrusted = { nodes: new Set(live.nodes_distrusted), links: new Set(live.links_distrusted) };
        this.up = new Set(live.nodes_up);
        this.load = live.load;
        const largest = Math.max(0, ...live.load.map((rate) => rate || 0));
        const classes = this.load.map((rate, i) => classOf(rate || 0, this.fabric.links[i >> 1][2 + (i & 1)], largest));
        const key = JSON.stringify([live.nodes_down, live.links_down, live.nodes_distrusted, live.links_distrusted, live.nodes_up.length]);
        if (key !== this.stateKey || !this.classes || classes.some((c, i) => c !== this.classes[i])) {
            this.classes = classes;
            this.stateKey = key;
            this.changed();
        }
    }

    resize() {
        if (!this.fabric) return;
        const { width, height } = openCanvas(this.canvas);
        this.width = width;
        this.height = height;
        this.places = placeNodes(this.fabric, width, height);
        this.spotsOf = this.drawnView = null;
        this.changed();
    }

    // The links must be drawn again, as after a change of colours.
    changed() {
        this.stale = true;
        this.redraw();
    }

    redraw() {
        if (this.due || !this.fabric) return;
        this.due = requestAnimationFrame(() => {
            this.due = null;
            this.draw();
        });
    }

    // The position of a node on the screen.
    at(n) {
        if (this.spotsOf !== this.view) {
            const { scale, x, y } = this.view;
            this.spots = this.places.map((place) => ({ x: place.x * scale + x, y: place.y * scale + y, half: Math.min(place.half * scale, Math.max(place.half, 34)) }));
            this.spotsOf = this.view;
        }
        return this.spots[n];
    }

    isDown(l) {
        const [a, b] = this.fabric.links[l];
        return this.down.links.has(l) || this.down.nodes.has(a) || this.down.nodes.has(b);
    }

    isDistrusted(l) {
        const [a, b] = this.fabric.links[l];
        return this.distrusted.links.has(l) || this.distrusted.nodes.has(a) || this.distrusted.nodes.has(b);
    }

    // Ends of the line of one direction: both directions are beside each other where there is room.
    line(l, direction) {
        const [a, b] = this.fabric.links[l], p = this.at(a), q = this.at(b);
        const length = Math.hypot(q.x - p.x, q.y - p.y) || 1, room = Math.min(p.half, q.half);
        const off = room > 6 ? (direction === 0 ? 3 : -3) + this.lane[l] * 13 : this.lane[l] * 3;
        const across = { x: -(q.y - p.y) / length * off, y: (q.x - p.x) / length * off };
        let bend = null;
        const { nodes, shape } = this.fabric;
        if (shape === 'layers' && nodes[a].level === nodes[b].level)
            bend = { x: (p.x + q.x) / 2, y: (p.y + q.y) / 2 - Math.min(110, 30 + 0.16 * length) };
        return { from: { x: p.x + across.x, y: p.y + across.y }, to: { x: q.x + across.x, y: q.y + across.y }, bend };
    }

    trace(path, l, direction) {
        const { from, to, bend } = this.line(l, direction);
        path.moveTo(from.x, from.y);
        if (bend) path.quadraticCurveTo(bend.x, bend.y, to.x, to.y);
        else path.lineTo(to.x, to.y);
    }

    // All links, in one path for each class.
    drawLinks(context) {
        const paths = Array.from({ length: CLASSES }, () => new Path2D()), down = new Path2D(), doubt = new Path2D();
        this.fabric.links.forEach((link, l) => {
            const p = this.at(link[0]), q = this.at(link[1]);
            if (Math.max(p.x, q.x) < 0 || Math.min(p.x, q.x) > this.width || Math.max(p.y, q.y) < 0 || Math.min(p.y, q.y) > this.height) return;
            if (this.isDown(l)) return this.trace(down, l, 0);
            if (this.isDistrusted(l)) return this.trace(doubt, l, 0);
            const classes = [0, 1].map((direction) => (this.classes ? this.classes[2 * l + direction] : 0));
            if (Math.min(p.half, q.half) > 6)
                [0, 1].forEach((direction) => this.trace(paths[classes[direction]], l, direction));
            else
                this.trace(paths[Math.max(...classes)], l, 0);
        });
        // Many links get thinner lines, so that they do not become an area.
        const thin = Math.max(0.28, Math.min(1, 20 * this.view.scale / Math.sqrt(this.fabric.links.length) - 0.1));
        paths.forEach((path, c) => {
            context.strokeStyle = color(`load-${c}`);
            context.globalAlpha = c === 0 && thin < 1 ? 0.6 : 1;
            context.lineWidth = WIDTHS[c] * thin;
            context.stroke(path);
        });
        context.globalAlpha = 1;
        this.drawDashed(context, down, 'bad', [7, 5]);
        this.drawDashed(context, doubt, 'doubt', [2, 4]);
    }

    // On a wider line of the background, so that it is seen among many others.
    drawDashed(context, path, name, dashes) {
        context.strokeStyle = color('panel');
        context.lineWidth = 5;
        context.stroke(path);
        context.strokeStyle = color(name);
        context.lineWidth = 2.4;
        context.setLineDash(dashes);
        context.stroke(path);
        context.setLineDash([]);
    }

    // A colour, looked up once for each drawing.
    colorOf(name) {
        if (!this.colors.has(name)) this.colors.set(name, color(name));
        return this.colors.get(name);
    }

    // The class of a host: that of its busiest link.
    hostClass(n) {
        let most = 0;
        for (const l of this.linksOf[n]) most = Math.max(most, this.classes ? Math.max(this.classes[2 * l], this.classes[2 * l + 1]) : 0);
        return most;
    }

    markPath(n, grow) {
        const { x, y, half } = this.at(n), path = new Path2D(), size = half + grow;
        if (this.fabric.nodes[n].host) path.arc(x, y, Math.max(1.2, size), 0, 2 * Math.PI);
        else path.rect(x - size, y - Math.max(3, Math.min(size, 11)) - grow / 2, 2 * size, 2 * Math.max(3, Math.min(size, 11)) + grow);
        return path;
    }

    drawNodes(context) {
        const fills = new Map();
        this.fabric.nodes.forEach((node, n) => {
            const { x, y, half } = this.at(n);
            if (x < -60 || x > this.width + 60 || y < -30 || y > this.height + 30) return;
            let fill = this.colorOf('node');
            if (this.down.nodes.has(n)) fill = this.colorOf('bad');
            else if (this.distrusted.nodes.has(n)) fill = this.colorOf('doubt');
            else if (node.host && half < 8) fill = this.colorOf(`load-${this.hostClass(n)}`);
            else if (half < 9) fill = this.colorOf('node-line');
            if (!fills.has(fill)) fills.set(fill, new Path2D());
            fills.get(fill).addPath(this.markPath(n, 0));
        });
        context.lineWidth = 1;
        context.strokeStyle = color('node-line');
        for (const [fill, path] of fills) {
            context.fillStyle = fill;
            context.fill(path);
            if (this.fabric.nodes.length < 400 || this.view.scale > 2) context.stroke(path);
        }
        this.drawNames(context);
    }

    drawNames(context) {
        context.font = '12px system-ui, "DejaVu Sans", sans-serif';
        context.textAlign = 'center';
        context.textBaseline = 'middle';
        this.fabric.nodes.forEach((node, n) => {
            const { x, y, half } = this.at(n);
            if (x < -60 || x > this.width + 60 || half < (node.host ? 8 : 16)) return;
            const bad = this.down.nodes.has(n) || this.distrusted.nodes.has(n);
            if (node.host) {
                context.fillStyle = color('text');
                context.fillText(shorten(context, node.name, 4.6 * half), x, y + half + 9);
            } else {
                context.fillStyle = bad ? color('panel') : color('text');
                context.fillText(shorten(context, node.name, 2 * half - 4), x, y + 0.5);
            }
        });
    }

    drawLayer() {
        const ratio = window.devicePixelRatio || 1, context = this.layer.getContext('2d');
        this.colors = new Map();
        this.layer.width = this.canvas.width;
        this.layer.height = this.canvas.height;
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        this.drawLinks(context);
        this.drawNodes(context);
        this.drawnView = { ...this.view };
        this.stale = false;
    }

    draw() {
        const { context, width, height } = openCanvas(this.canvas), before = this.drawnView;
        const moved = before && (before.scale !== this.view.scale || before.x !== this.view.x || before.y !== this.view.y);
        const settled = performance.now() - this.movedAt > SETTLE_MS;
        if (!before || ((moved || this.stale) && settled)) this.drawLayer();
        context.clearRect(0, 0, width, height);
        const from = this.drawnView, scale = this.view.scale / from.scale;
        context.drawImage(this.layer, this.view.x - from.x * scale, this.view.y - from.y * scale, width * scale, height * scale);
        this.drawChoice(context, this.hovered, 2);
        this.drawChoice(context, this.picked, 3);
        if (moved || this.stale) this.redraw();
    }

    drawChoice(context, choice, width) {
        if (!choice) return;
        context.strokeStyle = color('focus');
        context.lineWidth = width;
        if (choice.node !== undefined) {
            context.stroke(this.markPath(choice.node, 4));
            return;
        }
        const path = new Path2D();
        [0, 1].forEach((direction) => this.trace(path, choice.link, direction));
        context.lineWidth = width + 2;
        context.globalAlpha = 0.7;
        context.stroke(path);
        context.globalAlpha = 1;
    }

    // What is at a point of the screen.
    find(x, y) {
        let best = null, least = 9;
        this.fabric.nodes.forEach((node, n) => {
            const p = this.at(n), across = Math.abs(p.x - x) - p.half, along = Math.abs(p.y - y) - Math.min(p.half, 11);
            const distance = Math.max(across, along);
            if (distance < Math.min(least, 4)) {
                least = distance;
                best = { node: n };
            }
        });
        if (best) return best;
        this.fabric.links.forEach((_, l) => {
            const { from, to, bend } = this.line(l, 0);
            const distance = bend ? Math.min(toSegment(x, y, from, middle(from, bend, to)), toSegment(x, y, middle(from, bend, to), to)) : toSegment(x, y, from, to);
            if (distance < Math.min(least, 7)) {
                least = distance;
                best = { link: l };
            }
        });
        return best;
    }

    point(event) {
        const box = this.canvas.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    }

    hover(choice) {
        if (same(choice, this.hovered)) return;
        this.hovered = choice;
        this.choose(choice || this.picked);
        this.redraw();
    }

    pick(choice) {
        this.picked = choice;
        this.choose(choice);
        this.redraw();
    }

    onMove(event) {
        if (!this.fabric) return;
        const { x, y } = this.point(event);
        if (this.drag) {
            this.move(this.view.scale, this.drag.x + x, this.drag.y + y);
            return;
        }
        this.hover(this.find(x, y));
    }

    onPress(event) {
        if (!this.fabric) return;
        const { x, y } = this.point(event);
        this.pick(this.find(x, y));
        this.drag = { x: this.view.x - x, y: this.view.y - y };
        this.canvas.setPointerCapture(event.pointerId);
    }

    onWheel(event) {
        if (!this.fabric) return;
        event.preventDefault();
        const { x, y } = this.point(event);
        this.zoom(Math.exp(-event.deltaY * 0.0015), x, y);
    }

    move(scale, x, y) {
        const least = 0.2, { width, height } = this;
        this.view = {
            scale,
            x: Math.min(width * (1 - least), Math.max(width * (least - scale), x)),
            y: Math.min(height * (1 - least), Math.max(height * (least - scale), y)),
        };
        this.movedAt = performance.now();
        this.redraw();
    }

    zoom(factor, x = this.width / 2, y = this.height / 2) {
        const scale = Math.min(24, Math.max(0.5, this.view.scale * factor)), by = scale / this.view.scale;
        this.move(scale, x - (x - this.view.x) * by, y - (y - this.view.y) * by);
    }

    fit() {
        this.move(1, 0, 0);
    }

    onKey(event) {
        const keys = {
            '+': () => this.zoom(1.3), '=': () => this.zoom(1.3), '-': () => this.zoom(1 / 1.3), '0': () => this.fit(),
            Escape: () => this.pick(null), Enter: () => this.stepLink(event.shiftKey ? -1 : 1),
            ArrowLeft: () => this.step(-1, 0), ArrowRight: () => this.step(1, 0), ArrowUp: () => this.step(0, -1), ArrowDown: () => this.step(0, 1),
        };
        if (!this.fabric || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        event.preventDefault();
        keys[event.key]();
    }

    // Selects the nearest node in a direction; from a link, one of its ends.
    step(right, below) {
        const from = this.picked && (this.picked.node !== undefined ? this.picked.node : this.fabric.links[this.picked.link][below > 0 ? 1 : 0]);
        if (from === null || from === undefined) return this.show({ node: 0 });
        let best = null, least = Infinity;
        this.places.forEach((place, n) => {
            const dx = place.x - this.places[from].x, dy = place.y - this.places[from].y;
            const along = right ? dx * right : dy * below, across = Math.abs(right ? dy : dx);
            if (along > 0.5 && along + across * 3 < least) {
                least = along + across * 3;
                best = n;
            }
        });
        if (best !== null) this.show({ node: best });
        return undefined;
    }

    stepLink(by) {
        if (!this.picked) return;
        const node = this.picked.node !== undefined ? this.picked.node : this.linkNode;
        const links = node === undefined ? [] : this.linksOf[node];
        if (links.length === 0) return;
        const now = this.picked.link !== undefined ? links.indexOf(this.picked.link) : by > 0 ? -1 : 0;
        this.linkNode = node;
        this.show({ link: links[(now + by + links.length) % links.length] });
    }

    // Selects, and moves the view if the choice is outside it.
    show(choice) {
        if (choice.node !== undefined) {
            const { x, y } = this.at(choice.node);
            if (x < 0 || x > this.width || y < 0 || y > this.height)
                this.move(this.view.scale, this.view.x + this.width / 2 - x, this.view.y + this.height / 2 - y);
            this.linkNode = undefined;
        }
        this.pick(choice);
    }
}

function same(one, other) {
    return one === other || (one && other && one.node === other.node && one.link === other.link);
}

function middle(from, bend, to) {
    return { x: (from.x + 2 * bend.x + to.x) / 4, y: (from.y + 2 * bend.y + to.y) / 4 };
}

function toSegment(x, y, from, to) {
    const dx = to.x - from.x, dy = to.y - from.y, square = dx * dx + dy * dy || 1;
    const part = Math.max(0, Math.min(1, ((x - from.x) * dx + (y - from.y) * dy) / square));
    return Math.hypot(from.x + part * dx - x, from.y + part * dy - y);
}

function shorten(context, name, width) {
    if (context.measureText(name).width <= width) return name;
    let kept = name;
    while (kept.length > 1 && context.measureText(`${kept}\u2026`).width > width) kept = kept.slice(0, -1);
    return `${kept}\u2026`;
}
