// The chart of the last hour, and the small one of a link. Values that are unknown leave gaps.

import { color, openCanvas, percentText, rateText, timeText } from './text.js';

const HOUR_MS = 3600000, MINUTE_MS = 60000;
const SPANS = [4, 8, 20, 60]; // minutes, each a multiple of four
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 2]];
const LINES = ['load-1', 'load-4', 'load-2', 'load-5', 'load-3', 'load-0'];

export class Chart {
    constructor(canvas, text) {
        this.canvas = canvas;
        this.text = text;
        this.samples = [];
        this.series = 'carried';
        this.cursor = null; // ms since 1970
        new ResizeObserver(() => this.draw()).observe(canvas);
        canvas.addEventListener('pointermove', (event) => {
            const box = canvas.getBoundingClientRect();
            this.point(this.timeAt(event.clientX - box.left));
        });
        canvas.addEventListener('pointerleave', () => this.point(null));
        canvas.addEventListener('blur', () => this.point(null));
        canvas.addEventListener('keydown', (event) => this.onKey(event));
    }

    setSamples(samples) {
        this.samples = samples;
        this.draw();
    }

    // Adds the latest sample; keeps one hour.
    add(sample) {
        const last = this.samples[this.samples.length - 1];
        if (!sample || (last && sample[0] <= last[0])) return;
        this.samples.push(sample);
        while (this.samples.length > 0 && this.samples[0][0] < sample[0] - HOUR_MS) this.samples.shift();
        this.draw();
    }

    show(series) {
        this.series = series;
        this.draw();
    }

    end() {
        return this.samples.length > 0 ? this.samples[this.samples.length - 1][0] : Date.now();
    }

    // What the chart shows, in ms: an hour, or less while there are only few samples.
    span() {
        const known = this.samples.length > 0 ? this.end() - this.samples[0][0] : 0;
        return MINUTE_MS * (SPANS.find((minutes) => minutes * MINUTE_MS >= known) || 60);
    }

    timeAt(x) {
        return this.end() - this.span() + this.span() * (x - this.left) / (this.right - this.left);
    }

    nearest(time) {
        let low = 0, high = this.samples.length - 1;
        while (low < high) {
            const half = (low + high) >> 1;
            if (this.samples[half][0] < time) low = half + 1;
            else high = half;
        }
        return low > 0 && time - this.samples[low - 1][0] < this.samples[low][0] - time ? low - 1 : low;
    }

    onKey(event) {
        const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30, Home: -Infinity, End: Infinity }[event.key];
        if (by === undefined || this.samples.length === 0) return;
        event.preventDefault();
        const now = this.cursor === null ? this.samples.length - 1 : this.nearest(this.cursor);
        const next = Math.max(0, Math.min(this.samples.length - 1, now + by));
        this.point(this.samples[next][0]);
    }

    point(time) {
        this.cursor = time === null || this.samples.length === 0 ? null : this.samples[this.nearest(time)][0];
        this.draw();
    }

    // Lines of the chosen series: a name, and a value of each sample or null.
    lines() {
        if (this.series === 'carried') return [{ name: 'traffic', value: (s) => s[1] }];
        if (this.series === 'peak') return [{ name: 'highest load', value: (s) => (s[2] === null ? null : s[2] / 1000) }];
        const jobs = [...new Set(this.samples.flatMap((s) => s[5].map(([job]) => job)))].sort((a, b) => a - b);
        return jobs.map((job) => ({
            name: `job ${job}`,
            value: (s) => {
                const found = s[5].find(([number]) => number === job);
                return found && found[1] !== null ? found[1] / 1000 : null;
            },
        }));
    }

    valueText(value) {
        return this.series === 'carried' ? rateText(value) : percentText(value);
    }

    draw() {
        const { context, width, height } = openCanvas(this.canvas), lines = this.lines();
        const top = 8, bottom = height - 22;
        this.left = 76;
        this.right = width - 10;
        let most = this.series === 'carried' ? 1 : 1.05;
        for (const line of lines) for (const s of this.samples) most = Math.max(most, line.value(s) || 0);
        if (this.series === 'carried') most = niceAbove(most);
        this.scale = { x: (time) => this.right - (this.end() - time) / this.span() * (this.right - this.left), y: (value) => bottom - value / most * (bottom - top) };
        context.clearRect(0, 0, width, height);
        this.drawFaults(context, top, bottom);
        this.drawAxes(context, most, top, bottom);
        lines.forEach((line, i) => this.drawLine(context, line, i, lines.length));
        if (this.cursor !== null) {
            context.strokeStyle = color('focus');
            context.lineWidth = 1;
            context.beginPath();
            context.moveTo(this.scale.x(this.cursor), top);
            context.lineTo(this.scale.x(this.cursor), bottom);
            context.stroke();
        }
        this.say(lines);
    }

    // Times at which a link or a switch was down, as bars at the bottom.
    drawFaults(context, top, bottom) {
        context.fillStyle = color('bad');
        for (const s of this.samples)
            if (s[3] + s[4] > 0) context.fillRect(this.scale.x(s[0]) - 2, bottom - 4, 4, 4);
    }

    drawAxes(context, most, top, bottom) {
        context.font = '12px system-ui, "DejaVu Sans", sans-serif';
        context.fillStyle = color('faint');
        context.strokeStyle = color('line');
        context.lineWidth = 1;
        context.textAlign = 'right';
        context.textBaseline = 'middle';
        for (const part of [0, 0.5, 1]) {
            const value = this.series === 'carried' ? most * part : part, y = this.scale.y(value);
            context.beginPath();
            context.moveTo(this.left, y);
            context.lineTo(this.right, y);
            context.stroke();
            context.fillText(this.valueText(value), this.left - 8, y);
        }
        context.textBaseline = 'top';
        for (let quarter = 0; quarter <= 4; quarter++) {
            const minutes = quarter * this.span() / MINUTE_MS / 4;
            context.textAlign = quarter === 0 ? 'right' : quarter === 4 ? 'left' : 'center';
            context.fillText(quarter === 0 ? 'now' : `${minutes} min ago`, this.scale.x(this.end() - minutes * MINUTE_MS), bottom + 6);
        }
    }

    drawLine(context, line, i, count) {
        const path = new Path2D(), area = new Path2D();
        let before = null, first = null;
        for (const s of this.samples) {
            const value = line.value(s);
            if (value === null || (before !== null && s[0] - before > 10000)) before = null;
            if (value === null) continue;
            const x = this.scale.x(s[0]), y = this.scale.y(value);
            if (before === null) {
                path.moveTo(x, y);
                path.lineTo(x + 1, y);
            } else path.lineTo(x, y);
            if (first === null) {
                area.moveTo(x, this.scale.y(0));
                first = x;
            }
            area.lineTo(x, y);
            before = s[0];
            line.last = x;
        }
        context.strokeStyle = color(LINES[i % LINES.length]);
        context.lineWidth = 1.8;
        context.setLineDash(DASHES[i % DASHES.length]);
        if (count === 1 && first !== null) {
            area.lineTo(line.last, this.scale.y(0));
            context.fillStyle = context.strokeStyle;
            context.globalAlpha = 0.15;
            context.fill(area);
            context.globalAlpha = 1;
        }
        context.stroke(path);
        context.setLineDash([]);
    }

    // What the cursor shows, or the latest values, in words.
    say(lines) {
        const sample = this.samples[this.cursor === null ? this.samples.length - 1 : this.nearest(this.cursor)];
        let text = 'No sample yet.';
        if (sample) {
            const values = lines.map((line) => `${line.name} ${this.valueText(line.value(sample))}`);
            if (sample[3] > 0) values.push(`${sample[3]} ${sample[3] === 1 ? 'link' : 'links'} down`);
            if (sample[4] > 0) values.push(`${sample[4]} ${sample[4] === 1 ? 'switch' : 'switches'} down`);
            text = `${timeText(sample[0])}: ${values.join(', ') || 'no job'}`;
        }
        if (this.text.textContent !== text && (this.cursor !== null || document.activeElement !== this.canvas)) this.text.textContent = text;
    }
}

function niceAbove(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 4, 6, 8, 10].map((step) => step * power).find((nice) => nice >= value * 0.999);
}

// The hour of one link: percent of both directions, oldest first.
export function drawLink(canvas, hour) {
    const { context, width, height } = openCanvas(canvas), step = hour.step_ms / HOUR_MS * width;
    context.clearRect(0, 0, width, height);
    context.strokeStyle = color('line');
    context.strokeRect(0.5, 0.5, width - 1, height - 1);
    [hour.ab, hour.ba].forEach((values, i) => {
        const path = new Path2D();
        let pen = false;
        values.forEach((value, at) => {
            const x = width - (values.length - at - 0.5) * step, y = height - 2 - Math.min(100, value) / 100 * (height - 4);
            if (value !== null && pen) path.lineTo(x, y);
            else if (value !== null) {
                path.moveTo(x, y);
                path.lineTo(x + 1, y);
            }
            pen = value !== null;
        });
        context.strokeStyle = color(LINES[i]);
        context.setLineDash(DASHES[i]);
        context.lineWidth = 1.6;
        context.stroke(path);
    });
    context.setLineDash([]);
}
