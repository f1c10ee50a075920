// Keeps the files of the page, so that it opens while the server is away, and shows
// questions as notifications.
const cacheName = "tea-page"

// store keeps the page and the files that it names, and removes those of other versions.
async function store(response) {
	const text = await response.clone().text()
	const files = [...text.matchAll(/(?:href|src)="(\/page\/[^"]+)"/g)].map(match => match[1])
	const cache = await caches.open(cacheName)
	await Promise.all(files.map(async file => await cache.match(file) ?? cache.add(file)))
	await cache.put("/", response)
	for (const request of await cache.keys()) {
		const {pathname} = new URL(request.url)
		if (pathname !== "/" && !files.includes(pathname)) {
			await cache.delete(request)
		}
	}
}

// page returns the page, and keeps it if it comes from the server.
async function page(event) {
	try {
		const response = await fetch(event.request)
		if (response.ok) {
			event.waitUntil(store(response.clone()).catch(() => {})) // no space is left
		}
		return response
	} catch {
		return await caches.match("/", {cacheName}) ?? Response.error()
	}
}

addEventListener("install", event => {
	skipWaiting()
	event.waitUntil(fetch("/").then(store).catch(() => {})) // notifications work without
})

addEventListener("fetch", event => {
	const {origin, pathname} = new URL(event.request.url)
	if (origin === location.origin && pathname === "/") {
		event.respondWith(page(event))
	} else if (origin === location.origin && pathname.startsWith("/page/")) {
		event.respondWith(caches.match(event.request, {cacheName, ignoreVary: true}).then(file => file ?? fetch(event.request)))
	}
})

addEventListener("push", event => {
	const {title, body, tag, path} = event.data.json()
	event.waitUntil(registration.showNotification(title, {body, tag, data: path, requireInteraction: true}))
})

addEventListener("notificationclick", event => {
	event.notification.close()
	event.waitUntil(clients.openWindow(event.notification.data))
})
