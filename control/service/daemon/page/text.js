// Texts of numbers, and elements of the document. Texts of the fabric are only ever set as text, so
// that a name cannot become markup.

// "1.23 GB/s"; "-" if unknown.
export function rateText(bytesPerSecond) {
    if (bytesPerSecond === null || bytesPerSecond === undefined) return '-';
    const units = ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s', 'PB/s'];
    let value = bytesPerSecond, unit = 0;
    while (value >= 999.5 && unit + 1 < units.length) {
        value /= 1000;
        unit++;
    }
    return `${value >= 100 || unit === 0 ? value.toFixed(0) : value.toPrecision(3)} ${units[unit]}`;
}

export function percentText(part) {
    if (part === null || part === undefined || !Number.isFinite(part)) return '-';
    const percent = part * 100;
    return percent > 0 && percent < 1 ? '<1%' : `${percent.toFixed(0)}%`;
}

export function timeText(ms) {
    return new Date(ms).toLocaleTimeString('en-GB');
}

// An element with a class, a text, and children.
export function element(tag, kind, text, ...children) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    if (text !== null && text !== undefined) made.textContent = text;
    made.append(...children);
    return made;
}

// The value of a colour of page.css.
export function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// The size of a canvas on the screen; its pixels follow it. Returns the context, width and height in
// CSS pixels.
export function openCanvas(canvas) {
    const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(box.width)), height = Math.max(1, Math.round(box.height));
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return { context, width, height };
}
