// Keeps the files of the page, so that it opens without a network.

const version = 'assistant-1';
const engine = ['index', 'errors', 'json', 'run', 'worker', 'serve', 'engine', 'fs', 'disk', 'memory', 'wasm_exec'];
const files = ['./', './page.js', './assistant.yaml', './tea/tea.wasm', ...engine.map((name) => `./tea/${name}.js`)];

self.addEventListener('install', (e) => {
  e.waitUntil(caches.open(version).then((cache) => cache.addAll(files)).then(() => self.skipWaiting()));
});

self.addEventListener('activate', (e) => {
  const remove = (names) => Promise.all(names.filter((name) => name !== version).map((name) => caches.delete(name)));
  e.waitUntil(caches.keys().then(remove).then(() => self.clients.claim()));
});

self.addEventListener('fetch', (e) => {
  if (e.request.method === 'GET') e.respondWith(caches.match(e.request).then((kept) => kept ?? fetch(e.request)));
});
