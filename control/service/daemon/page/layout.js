// Positions of the nodes for a given size of the canvas. banyand sends levels, and the order of each
// level (as `banyan plot` draws them). Layers are drawn with the hosts of each switch as a block
// below it, so that thousands of hosts fit a screen. Other shapes keep banyand's positions.

const MARGIN = 26;

function neighbours(fabric) {
    const near = fabric.nodes.map(() => []);
    fabric.links.forEach(([a, b]) => {
        near[a].push(b);
        near[b].push(a);
    });
    return near;
}

// Hosts in groups: those of the same nearest switch of the lowest level.
function groupHosts(fabric, near) {
    const { nodes } = fabric, groups = new Map();
    const hosts = nodes.map((_, n) => n).filter((n) => nodes[n].level === 0).sort((a, b) => nodes[a].x - nodes[b].x);
    for (const host of hosts) {
        const above = near[host].filter((n) => nodes[n].level > 0).sort((a, b) =>
            nodes[a].level - nodes[b].level || Math.abs(nodes[a].x - nodes[host].x) - Math.abs(nodes[b].x - nodes[host].x));
        const key = above.length > 0 ? above[0] : -1;
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(host);
    }
    return groups;
}

// The number of rows of each block, for which the marks of hosts become largest.
function chooseRows(groups, width, height) {
    const sizes = [...groups.values()].map((group) => group.length), largest = Math.max(...sizes);
    let best = { rows: 1, pitch: 0, columns: 1 };
    for (let rows = 1; rows <= largest; rows++) {
        const columns = sizes.reduce((sum, size) => sum + Math.ceil(size / rows) + 0.8, 0);
        const across = width / columns, pitch = Math.min(across, rows > 1 ? height / rows : across, 90);
        if (pitch > best.pitch * 1.15) best = { rows, pitch, columns, across: Math.min(across, 90) };
    }
    return best;
}

function placeLayers(fabric, width, height) {
    const { nodes } = fabric, levels = Math.max(...nodes.map((node) => node.level));
    const near = neighbours(fabric), groups = groupHosts(fabric, near);
    const inside = width - 2 * MARGIN, band = height * 0.36;
    const { rows, pitch, columns, across } = chooseRows(groups, inside, band);
    const places = nodes.map(() => ({ x: 0, y: 0, half: 0 }));
    const depth = rows > 1 ? pitch * (rows - 1) : 0, bottom = height - MARGIN - (rows === 1 && pitch > 34 ? 14 : 0);
    let at = MARGIN + (inside - across * columns) / 2 + across * 0.4;
    for (const [key, group] of groups) {
        const count = Math.ceil(group.length / rows);
        group.forEach((host, i) => {
            const column = i % count, row = Math.floor(i / count);
            places[host] = { x: at + (column + 0.5) * across, y: bottom - depth + row * pitch, half: Math.min(11, pitch * 0.36) };
        });
        if (key >= 0) places[key].x = at + count * across / 2;
        at += (count + 0.8) * across;
    }
    for (let level = 1; level <= levels; level++) {
        const row = nodes.map((_, n) => n).filter((n) => nodes[n].level === level).sort((a, b) => nodes[a].x - nodes[b].x);
        const even = level > 1 || row.some((n, i) => !groups.has(n) || (i > 0 && places[n].x - places[row[i - 1]].x < 6));
        const y = MARGIN + (bottom - depth - MARGIN) * (levels - level) / levels;
        // Not much wider than what is below, and wide enough for names.
        const span = Math.min(inside, Math.max(across * columns, row.length * 90));
        row.forEach((n, i) => {
            if (even) places[n].x = width / 2 + span * ((i + 0.5) / row.length - 0.5);
            places[n].y = y;
            places[n].half = Math.max(2, Math.min(30, (even ? span : inside) / row.length * 0.4));
        });
    }
    return places;
}

function placeGiven(fabric, width, height) {
    const scale = Math.min((width - 2 * MARGIN) / fabric.width, (height - 2 * MARGIN) / fabric.height);
    const left = (width - fabric.width * scale) / 2, top = (height - fabric.height * scale) / 2;
    return fabric.nodes.map((node) => ({
        x: left + node.x * scale, y: top + node.y * scale,
        half: Math.max(2, Math.min(node.host ? 11 : 30, (node.host ? 14 : 26) * scale)),
    }));
}

// Returns {x, y, half} of each node in pixels; `half` is half the width of its mark.
export function placeNodes(fabric, width, height) {
    return fabric.shape === 'layers' ? placeLayers(fabric, width, height) : placeGiven(fabric, width, height);
}
